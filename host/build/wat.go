package build

import (
	"context"
	"fmt"
)

// wat is the text format of WebAssembly.
var wat = language{
	Language: Language{ID: "wat", Name: "WebAssembly text", Needs: []Program{wat2wasm}},
	sources:  []string{"*.wat"},
	compile:  (*builder).compileWAT,
}

var wat2wasm = Program{Name: "wat2wasm", Install: "apt install wabt"}

func (b *builder) compileWAT(ctx context.Context, sources []string) error {
	if len(sources) > 1 {
		return fmt.Errorf("%s has %d .wat files, and a module is one: keep one", b.Dir, len(sources))
	}
	return b.run(ctx, wat2wasm, b.Dir, nil, names(sources)[0], "-o", b.out)
}
