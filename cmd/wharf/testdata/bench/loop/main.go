// Command loop is an agent with nothing around it: no log, no hooks, no
// permission, no sandbox. It is the floor for a tool turn.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []call `json:"tool_calls,omitempty"`
	CallID  string `json:"tool_call_id,omitempty"`
}

type call struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func main() {
	messages := []message{{Role: "user", Content: os.Args[2]}}
	for {
		reply, err := ask(os.Args[1], messages)
		if err != nil {
			log.Fatal(err)
		}
		messages = append(messages, reply)
		if len(reply.Calls) == 0 {
			fmt.Println(reply.Content)
			return
		}
		for _, c := range reply.Calls {
			messages = append(messages, message{Role: "tool", CallID: c.ID, Content: run(c)})
		}
	}
}

// ask sends the messages and puts the reply together.
func ask(base string, messages []message) (message, error) {
	reply := message{Role: "assistant"}
	body, err := json.Marshal(map[string]any{"model": "m", "stream": true, "messages": messages})
	if err != nil {
		return reply, err
	}
	response, err := http.Post(base+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta message }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return reply, err
		}
		for _, choice := range chunk.Choices {
			add(&reply, choice.Delta)
		}
	}
	return reply, lines.Err()
}

func add(reply *message, delta message) {
	reply.Content += delta.Content
	for _, c := range delta.Calls {
		if c.Index == len(reply.Calls) {
			reply.Calls = append(reply.Calls, c)
		} else {
			reply.Calls[c.Index].Function.Arguments += c.Function.Arguments
		}
	}
}

// run runs a call's command and returns what the model gets to read.
func run(c call) string {
	var arguments struct{ Command string }
	if err := json.Unmarshal([]byte(c.Function.Arguments), &arguments); err != nil {
		return err.Error()
	}
	output, err := exec.Command("sh", "-c", arguments.Command).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s\n%v", output, err)
	}
	return string(output)
}
