// Package guestsdk holds the guest SDKs' sources and the templates of new
// extensions, so that wharf can make and build one without a network and without
// anything published.
//
// templates/LANGUAGE/KIND holds the sources of a new extension, and
// templates/common/KIND what is the same in all languages. A file NAME.tmpl
// becomes NAME; text/template gives it the extension's Name, its Tool, its
// Language, and what it Needs to be built. A new language is a new folder.
package guestsdk

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed go/agent.go go/guest_other.go go/guest_wasip1.go go/host.go go/points.go go/register.go go/wharf.go
//go:embed c/wharf.h
//go:embed rust/Cargo.toml rust/src
//go:embed zig/wharf.zig
//go:embed assemblyscript/package.json assemblyscript/assembly
var sources embed.FS

// SDK returns the sources of a language's SDK, by the language's name on the
// command line; nil where it has none.
func SDK(language string) fs.FS {
	if _, err := fs.Stat(sources, language); err != nil {
		return nil
	}
	sub, err := fs.Sub(sources, language)
	if err != nil {
		return nil // not a name of a folder
	}
	return sub
}

//go:embed templates
var templates embed.FS

// Templates returns the files of a new extension of a kind in a language, each
// layer over the one before it; none where there is no template of that kind in
// that language.
func Templates(language, kind string) []fs.FS {
	var layers []fs.FS
	for _, folder := range []string{"common", language} {
		sub, err := fs.Sub(templates, path.Join("templates", folder, kind))
		if err != nil {
			return nil
		}
		if _, err := fs.Stat(sub, "."); err != nil {
			return nil
		}
		layers = append(layers, sub)
	}
	return layers
}
