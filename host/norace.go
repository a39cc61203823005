//go:build !race

package host

// slowdown is how much longer than usual compiling may take in this build.
const slowdown = 1
