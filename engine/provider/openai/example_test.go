package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/openai"
	"github.com/wharf-agent/wharf/engine/session"
)

func ExampleProvider_Stream() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()

	p, err := openai.New(openai.Config{BaseURL: server.URL + "/v1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := provider.Request{
		Header:   session.Header{Model: "any"},
		Messages: []session.Message{{Role: session.User, Content: "Hi."}},
	}
	for d, err := range p.Stream(context.Background(), req) {
		fmt.Printf("%q %q %v\n", d.Text, d.Finish, err)
	}
	// Output:
	// "Hello." "" <nil>
	// "" "stop" <nil>
}
