package guestsdk_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Off Wasm the Zig SDK builds, and does what its tests say.
func TestZigSDKWithoutAHost(t *testing.T) {
	needLanguage(t, "zig")
	zig := []string{"zig"}
	if _, err := exec.LookPath("zig"); err != nil {
		zig = []string{"python3", "-m", "ziglang"}
	}
	argv := append(zig, "test", "--cache-dir", filepath.Join(t.TempDir(), "cache"), "--dep", "wharf", "-Mroot=testdata/sdk_test.zig", "-Mwharf=zig/wharf.zig")
	if text, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}
