package cli

import (
	"io"
	"os"

	"github.com/wharf-agent/wharf/engine/session"
)

// readImages reads the files of --image.
func readImages(paths []string) (all []session.Image, err error) {
	for _, path := range paths {
		image, err := readImage(path)
		if err != nil {
			return nil, err
		}
		all = append(all, image)
	}
	return all, nil
}

func readImage(path string) (session.Image, error) {
	info, err := os.Stat(path)
	if err != nil {
		return session.Image{}, usagef("--image: %w", err)
	}
	if !info.Mode().IsRegular() {
		return session.Image{}, usagef("--image %q: it is no file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return session.Image{}, usagef("--image: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, session.MaxImage+1))
	if err != nil {
		return session.Image{}, usagef("--image: %w", err)
	}
	image, ok, err := session.ImageOf(data)
	switch {
	case !ok:
		return session.Image{}, usagef("--image %q: it is no PNG, JPEG, GIF or WebP", path)
	case err != nil:
		return session.Image{}, usagef("--image %q: %w", path, err)
	}
	return image, nil
}
