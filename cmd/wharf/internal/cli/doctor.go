package cli

import (
	"context"
	"fmt"
	"os/user"
)

// doctorCommand says what works on this machine, and what would help.
func doctorCommand(ctx context.Context, io stdio, args []string) error {
	var o runOptions
	if err := parse(io, sandboxFlags("doctor", &o), "doctor [flags]", args); err != nil {
		return err
	}
	f, err := findFolders()
	if err != nil {
		return err
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	fmt.Fprintf(io.out, "wharf        %s, as user %s\nsessions     %s\nsettings     %s\nextensions   %s\n\n",
		version, name, f.sessions(), f.configFile(), printable(installedInShort(f)))
	box, err := o.openSandbox(io)
	if err != nil {
		return err
	}
	fmt.Fprint(io.out, printable(box.Explain(ctx)))
	_, err = box.Choose(ctx)
	return err
}

// installedInShort says how many extensions are installed, and what is wrong with them.
func installedInShort(f folders) string {
	modules, err := f.store().Read()
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%d installed", len(modules))
	for _, m := range modules {
		if err := m.Verify(); err != nil {
			text += fmt.Sprintf("; %s cannot be loaded: %v", m.Name, err)
		}
	}
	return text
}
