package session

import (
	"bytes"
	"fmt"
)

// Image is a picture that a model is shown.
type Image struct {
	MediaType string `json:"media_type"` // such as image/png
	Data      []byte `json:"data"`       // in base64 as JSON
}

// MaxImage is how many bytes an image may have: in base64 that is the 5 MiB that
// the strictest server takes.
const MaxImage = 5 << 20 / 4 * 3

// ImageOf returns data as an image if its beginning says that it is a PNG, JPEG,
// GIF or WebP. An error means that it is one, and too large to be shown.
func ImageOf(data []byte) (image Image, ok bool, err error) {
	media := mediaType(data)
	if media == "" {
		return Image{}, false, nil
	}
	if len(data) > MaxImage {
		return Image{}, true, fmt.Errorf("the image has %d bytes, and a model is shown at most %d: make it smaller", len(data), MaxImage)
	}
	return Image{MediaType: media, Data: data}, true, nil
}

func mediaType(data []byte) string {
	for _, magic := range []struct{ prefix, media string }{
		{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF87a", "image/gif"}, {"GIF89a", "image/gif"},
	} {
		if bytes.HasPrefix(data, []byte(magic.prefix)) {
			return magic.media
		}
	}
	if len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		return "image/webp"
	}
	return ""
}
