package guestsdk_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host/build"
)

const jsonManifest = "name = \"x\"\nversion = \"1\"\nabi = 1\n\n[[tools]]\nname = \"json\"\ndescription = \"x\"\ninput_schema = '{\"type\":\"object\"}'\n"

// What the SDKs for Rust and AssemblyScript read as a whole means the same to Go
// once they have written it again.
func TestJSONComesOutAsItWentIn(t *testing.T) {
	for language, files := range map[string]map[string]string{
		"rust": {"lib.rs": "wharf::tools!(json);\n\nfn json(input: wharf::ToolInput) -> Result<String, String> {\n" +
			"    Ok(wharf::Json::parse(input.arguments.str(\"text\"))?.to_string())\n}\n"},
		"assemblyscript": {"index.ts": "import { Json, ToolInput, ToolOutput } from \"wharf/assembly\";\n\nexport function json(input: ToolInput): ToolOutput {\n" +
			"  const json = Json.parse(input.arguments.str(\"text\"));\n  return json === null ? ToolOutput.error(\"no JSON\") : ToolOutput.text(json.toString());\n}\n"},
	} {
		t.Run(language, func(t *testing.T) {
			needLanguage(t, language)
			files[build.ManifestFile] = jsonManifest
			s, _ := join(t, buildText(t, files))
			ctx := t.Context()
			rapid.Check(t, func(t *rapid.T) {
				text := object.Draw(t, "text")
				arguments, err := json.Marshal(map[string]string{"text": text})
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.Tools()[0].Run(ctx, tool.Call{Name: "json", Arguments: arguments})
				if err != nil || got.IsError {
					t.Fatalf("%s: %+v, %v", text, got, err)
				}
				if before, after := meaning(t, text), meaning(t, got.Content); !reflect.DeepEqual(before, after) {
					t.Fatalf("%s comes out as %s", text, got.Content)
				}
			})
		})
	}
}

// meaning is what Go makes of a JSON text, with the digits of its numbers.
func meaning(t *rapid.T, text string) (value any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}
