//go:build race

package host

// slowdown is how much longer than usual compiling may take in this build: the
// race detector makes it about eight times slower.
const slowdown = 10
