package build

import "context"

// c is C without a standard library. A header of the SDK's beside the sources
// is used; else that of this program.
var c = language{
	Language: Language{ID: "c", Name: "C", Needs: []Program{clang, {Name: "wasm-ld", Install: installC}}},
	sources:  []string{"*.c"},
	compile:  (*builder).compileC,
}

var clang = Program{Name: "clang", Install: installC}

const installC = "apt install clang lld"

func (b *builder) compileC(ctx context.Context, sources []string) error {
	sdk, err := b.unpackSDK()
	if err != nil {
		return err
	}
	return b.run(ctx, clang, b.Dir, nil, append([]string{
		"--target=wasm32", "-std=c11", "-Os", "-Wall", "-Wextra", "-ffreestanding", "-nostdlib", "-mbulk-memory",
		"-Wl,--no-entry", "-Wl,--strip-all", "-I", sdk, "-o", b.out,
	}, names(sources)...)...)
}
