package build

// Language is a language that extensions are written in.
type Language struct {
	ID    string // for the command line
	Name  string
	Needs []Program // what compiles it
}

// Program is a program that a build starts.
type Program struct {
	Name    string `json:"program"`
	Install string `json:"install"` // the command that installs it, or where to get it
}

// Languages lists the languages that [Extension] builds.
func Languages() []Language {
	all := make([]Language, len(languages))
	for i, l := range languages {
		all[i] = l.Language
	}
	return all
}

// Missing lists what is needed and not found in the PATH of an environment.
func (l Language) Missing(env []string) []Program {
	var all []Program
	for _, p := range l.Needs {
		if _, err := find(env, p.Name, p.Install); err != nil {
			all = append(all, p)
		}
	}
	return all
}
