// Command post sends one POST and reads what comes back: the floor for the
// start of a program that asks a model something.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	body := strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	response, err := http.Post(os.Args[1]+"/chat/completions", "application/json", body)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		log.Fatal(err)
	}
}
