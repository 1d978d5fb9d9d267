package tools

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// TestToolsList: what clients see of the tools is a golden, and (case 95)
// nothing in it makes a strict client drop a tool.
func TestToolsList(t *testing.T) {
	s, _ := offline(t, Config{})
	result := ask(t, s, "tools/list", `{}`).Result.Tools
	var got bytes.Buffer
	if err := json.Indent(&got, append(result, '\n'), "", "  "); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/tools.golden.json"
	if *update {
		os.WriteFile(file, got.Bytes(), 0o666)
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, got.Bytes()) {
		t.Errorf("%s differs (%v); go test ./tools -update rewrites it. got:\n%s", file, err, &got)
	}
	if bad := regexp.MustCompile(`"(\$ref|\$defs|definitions|anyOf|oneOf|allOf|\$schema)"`).Find(result); bad != nil {
		t.Errorf("there is a %s", bad)
	}
	var list []struct {
		Name, Title, Description string
		Annotations              map[string]any
		InputSchema              struct {
			Type       string
			Properties map[string]struct {
				Type, Description string // a list of types does not fit
				Default           any
			}
			Required             []string
			AdditionalProperties *bool
		}
	}
	if err := json.Unmarshal(result, &list); err != nil || len(list) != len(s.tools()) {
		t.Fatalf("%d tools, %v; want %d", len(list), err, len(s.tools()))
	}
	word, names := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`), map[string]bool{}
	for _, tool := range list {
		in := tool.InputSchema
		if !word.MatchString(tool.Name) || names[tool.Name] || tool.Description == "" || tool.Title == "" ||
			in.Type != "object" || in.Properties == nil || in.AdditionalProperties == nil || *in.AdditionalProperties {
			t.Errorf("%+v; want a name of its own, a title, a description, an object of these properties and no others", tool)
		}
		names[tool.Name] = true
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, is := tool.Annotations[hint].(bool); !is {
				t.Errorf("%s: %s is %v; want true or false", tool.Name, hint, tool.Annotations[hint])
			}
		}
		for name, p := range in.Properties {
			kind := map[string]string{"string": "string", "number": "float64", "boolean": "bool"}[p.Type]
			if kind == "" || p.Description == "" || !word.MatchString(name) || p.Default != nil && fmt.Sprintf("%T", p.Default) != kind {
				t.Errorf("%s.%s: %+v; want one plain type, a description, a default of that type", tool.Name, name, p)
			}
		}
		for _, name := range in.Required {
			if in.Properties[name].Type == "" {
				t.Errorf("%s requires %s, which it does not have", tool.Name, name)
			}
		}
	}
}

// TestDecode: what is taken, and as what; a refusal names the field, what came, and what is allowed.
func TestDecode(t *testing.T) {
	const number, flag, str, control = "; want a number from 0.1 to 45", "; want true or false", "; want a string", "; want no control or invisible characters"
	const known, half = "want one of code, language, sandbox_id, timeout, stdin", "holds half of a character (a lone surrogate, or bytes that are no UTF-8); want whole characters"
	most := strings.Repeat("x", MaxCode)
	s, _ := offline(t, Config{})
	for _, c := range []struct{ name, tool, raw, want string }{ // {…} is accepted, all else an error's text
		{"55 number", "execute_code", `{"code":"","timeout":"5"}`, `{"code":"","timeout":5}`},
		{"55 fraction", "execute_code", `{"code":"","timeout":"5.0"}`, `{"code":"","timeout":5}`},
		{"55 false", "initialize_sandbox", `{"network":"false"}`, `{"network":false}`},
		{"55 true", "initialize_sandbox", `{"network":"true"}`, `{"network":true}`},
		{"55 word", "execute_code", `{"code":"","timeout":"soon"}`, `timeout: "soon"` + number},
		{"55 not true by being there", "initialize_sandbox", `{"network":"no"}`, `network: "no"` + flag},
		{"58 half", "execute_code", `{"code":"","timeout":0.5}`, `{"code":"","timeout":0.5}`},
		{"58 null", "execute_code", `{"code":"","timeout":null}`, `{"code":""}`},
		{"58 most", "execute_code", `{"code":"","timeout":45}`, `{"code":"","timeout":45}`},
		{"58 zero", "execute_code", `{"code":"","timeout":0}`, `timeout: 0` + number},
		{"58 negative", "execute_code", `{"code":"","timeout":-1}`, `timeout: -1` + number},
		{"58 huge", "execute_code", `{"code":"","timeout":1e12}`, `timeout: 1e12` + number},
		{"58 just over", "execute_code", `{"code":"","timeout":45.001}`, `timeout: 45.001` + number},
		{"61 nothing", "execute_code", ``, `code is missing`},
		{"61 all that is wrong", "execute_code", `{"code":null,"timeout":0,"cod":1}`, "code is missing\ntimeout: 0" + number + "\nthere is no argument \"cod\"; did you mean code? " + known},
		{"61 nothing wanted", "list_sandboxes", `null`, `{}`},
		{"62 NUL", "execute_code", `{"code":"a\u0000\r\n"}`, `{"code":"a\u0000\r\n"}`},
		{"62 U+FFFD is a character", "execute_code", `{"code":"\uFFFD","stdin":"�"}`, `{"code":"�","stdin":"�"}`},
		{"62 surrogate pair", "execute_code", `{"code":"\ud83d\ude00"}`, `{"code":"😀"}`},
		{"62 lone surrogate", "execute_code", `{"code":"print('\ud83d')"}`, `code: ` + half},
		{"62 no UTF-8", "execute_code", "{\"code\":\"\xff\"}", `code: ` + half},
		{"87 as written", "execute_code", `{"code":"","language":"Node"}`, `{"code":"","language":"Node"}`},
		{"A-29", "initialize_sandbox", `{"image":"a\u0000b"}`, `image: "a\x00b"` + control},
		{"A-30 limit", "execute_code", `{"code":"` + most + `"}`, `{"code":"` + most + `"}`},
		{"A-30 limit and one", "execute_code", `{"code":"x` + most + `"}`, `code: 8388609 bytes; want at most 8388608`},
		{"A-32 NaN", "execute_code", `{"code":"","timeout":"NaN"}`, `timeout: "NaN"` + number},
		{"A-32 infinite", "execute_code", `{"code":"","timeout":"Inf"}`, `timeout: "Inf"` + number},
		{"A-32 out of float64", "execute_code", `{"code":"","timeout":1e999}`, `timeout: 1e999` + number},
		{"A-32 2^63", "execute_code", `{"code":"","timeout":9223372036854775808}`, `timeout: 9223372036854775808` + number},
		{"A-32 unit", "execute_code", `{"code":"","timeout":"64mm"}`, `timeout: "64mm"` + number},
		{"A-33", "initialize_sandbox", `{"network":"container:x"}`, `network: "container:x"` + flag},
		{"A-37", "execute_code", `{"code":"","volumes":["/:/h"],"privileged":true,"env":1}`, "there is no argument \"env\"; " + known + "\nthere is no argument \"privileged\"; " + known + "\nthere is no argument \"volumes\"; " + known},
		{"A-37 case", "execute_code", `{"code":"","Timeout":5}`, `there is no argument "Timeout"; did you mean timeout? ` + known},
		{"A-37 none wanted", "list_sandboxes", `{"all":true}`, `there is no argument "all"; want none`},
		{"A-38 list", "execute_code", `{"code":[]}`, `code: []` + str},
		{"A-38 list of numbers", "execute_code", `{"code":"","timeout":[5]}`, `timeout: [5]` + number},
		{"A-38 depth", "execute_code", `{"code":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, `code: ` + strings.Repeat("[", 80) + `…` + str},
		{"A-38 no object", "execute_code", `["code"]`, `arguments: ["code"]; want an object`},
		{"A-40 RTL override", "stop_sandbox", `{"sandbox_id":"a\u202eb"}`, `sandbox_id: "a\u202eb"` + control},
		{"A-40 300", "execute_code", `{"code":"","language":"` + strings.Repeat("x", 300) + `"}`, `language: 300 bytes; want at most 200`},
		{"A-40 300 image", "initialize_sandbox", `{"image":"` + strings.Repeat("x", 300) + `"}`, `image: 300 bytes; want at most 255`},
		{"A-40 newline", "execute_code", `{"code":"","language":"sh\nsh"}`, `language: "sh\nsh"` + control},
		{"A-40 escaped name", "stop_sandbox", `{"\u001b]0;x\u0007":1}`, `there is no argument "\x1b]0;x\a"; want one of sandbox_id`},
		{"A-40 cut on a character", "stop_sandbox", `{"x` + strings.Repeat("é", 100) + `":1}`, `there is no argument "x` + strings.Repeat("é", 39) + `…"; want one of sandbox_id`},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, err := decode(row(s, c.tool).fields, json.RawMessage(c.raw))
			got := quoted(args)
			if err != nil && args == nil {
				got = err.Error()
			}
			if got != c.want || (err == nil) != (c.want[0] == '{') {
				t.Errorf("%.200s\ngot\n%.500s\nwant\n%.500s", c.raw, got, c.want)
			}
		})
	}
}

// TestDecodeUnknown: A-12, no tool takes a field that its schema lacks, whatever the value.
func TestDecodeUnknown(t *testing.T) {
	s, _ := offline(t, Config{})
	for _, tool := range s.tools() {
		for _, name := range []string{"env", "user", "workdir", "volumes", "privileged", "network_mode", "command", "__proto__", "--privileged", ""} {
			for _, value := range []string{`true`, `"root"`, `"-v/:/h"`, `["/:/h"]`, `{"LD_PRELOAD":"/x"}`, `null`, `0`} {
				_, err := decode(tool.fields, json.RawMessage(`{"code":"",`+quoted(name)+`:`+value+`}`))
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("there is no argument %q; ", name)) {
					t.Errorf("%s with %q: %s: %v", tool.name, name, value, err)
				}
			}
		}
	}
}

// FuzzDecode: nothing makes any tool's decoding panic; what it takes is known,
// of its type and within its bounds; what it says about the rest is readable.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{``, `null`, `{}`, `[]`, `{"code":"x","language":"py","timeout":"5","stdin":"\ud83d","sandbox_id":"a"}`,
		`{"image":"a:b","network":"false","language":"sh"}`, `{"code":1,"code":"x","Code":null}`, `{"timeout":1e999,"code":"\ufffd"}`, "{\"code\":\"\xff\",\"\u202e\":1}"} {
		f.Add([]byte(seed))
	}
	s, _ := offline(f, Config{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, tool := range s.tools() {
			args, err := decode(tool.fields, raw)
			if err != nil {
				unreadable := func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }
				if text := err.Error(); args != nil || len(text) > 10000 || strings.ContainsFunc(text, unreadable) {
					t.Fatalf("%s: %v with error %q", tool.name, args, text)
				}
				continue
			}
			var given map[string]json.RawMessage
			json.Unmarshal(raw, &given)
			for _, a := range tool.fields {
				fits := !a.Required && (given[a.Name] == nil || string(given[a.Name]) == "null")
				switch v := args[a.Name].(type) {
				case string:
					most := map[string]int{"code": MaxCode, "stdin": MaxCode, "image": 255}[a.Name]
					fits = a.Type == "string" && len(v) <= max(most, 200) && utf8.ValidString(v) && (a.Raw || !strings.ContainsFunc(v, unicode.IsControl))
				case float64:
					fits = a.Type == "number" && v >= a.Low && v <= a.High // false for NaN
				case bool:
					fits = a.Type == "boolean"
				}
				delete(given, a.Name)
				if !fits {
					t.Fatalf("%s took %s: %#v of %q", tool.name, a.Name, args[a.Name], raw)
				}
			}
			if len(given) > 0 {
				t.Fatalf("%s took %q, with names that it does not know", tool.name, raw)
			}
		}
	})
}
