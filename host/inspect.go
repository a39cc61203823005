package host

// Inspection is what a module says of itself, before anybody runs it.
type Inspection struct {
	Digest   string
	Manifest *Manifest // nil if it has none, or one that is not valid
	Imports  []string  // module.name
	Exports  []string
	lists    bool  // it lists its tools itself
	debug    int   // bytes that are for debuggers
	Problem  error // why it could not be loaded, as far as that shows without compiling it; nil if it could
}

// Inspect looks into a core module of any kind, an extension or not. It
// refuses what is no core module.
func Inspect(wasm []byte) (*Inspection, error) {
	m, err := parseModule(wasm)
	if err != nil {
		return nil, err
	}
	i := &Inspection{Digest: digest(wasm)}
	for _, e := range m.imports {
		i.Imports = append(i.Imports, e.String())
	}
	for _, e := range m.exports {
		i.Exports = append(i.Exports, e.String())
	}
	_, _, i.lists = m.lister()
	i.debug = debugSize(m.sections)
	_, _, i.Problem = examine(wasm)
	if i.Problem == nil {
		_, i.Problem = m.rewrite()
	}
	if text, err := manifestText(m.sections); err == nil {
		i.Manifest, _ = ParseManifest(text) // if that fails, it is the Problem
	}
	return i, nil
}
