package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// field is one argument of a tool.
type field struct {
	Name     string
	Type     string // JSON's: string, number, boolean
	About    string // for the model
	Required bool
	Default  any      // for the schema; the tool applies it
	Enum     []string // for the schema; the tool checks it, and knows aliases
	Max      int      // bytes of a string; 0 is 200
	Raw      bool     // a string that may hold any character, NUL and newlines too
	Low      float64  // least number
	High     float64  // greatest number
}

const maxWord = 200

// arguments are a call's, checked: the right types, within their bounds.
type arguments map[string]any

func (a arguments) text(name string) string { s, _ := a[name].(string); return s }
func (a arguments) flag(name string) bool   { b, _ := a[name].(bool); return b }
func (a arguments) number(name string) (n float64, given bool) {
	n, given = a[name].(float64)
	return n, given
}

// schema writes a tool's input schema, by hand: one plain type a field, since
// some clients take no more.
func schema(fields []field) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s:{"type":%s,"description":%s`, quoted(f.Name), quoted(f.Type), quoted(f.About))
		if f.Default != nil {
			fmt.Fprintf(&b, `,"default":%s`, quoted(f.Default))
		}
		if f.Enum != nil {
			fmt.Fprintf(&b, `,"enum":%s`, quoted(f.Enum))
		}
		if f.High > 0 {
			fmt.Fprintf(&b, `,"minimum":%s,"maximum":%s`, quoted(f.Low), quoted(f.High))
		}
		b.WriteByte('}')
		if f.Required {
			required = append(required, f.Name)
		}
	}
	b.WriteByte('}')
	if required != nil {
		fmt.Fprintf(&b, `,"required":%s`, quoted(required))
	}
	b.WriteString(`,"additionalProperties":false}`)
	return json.RawMessage(b.String())
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only strings, numbers and lists of them come here
	}
	return string(b)
}

// decode checks a call's arguments. The error names every field that is wrong,
// what came, and what is allowed.
func decode(fields []field, raw json.RawMessage) (arguments, error) {
	given := map[string]json.RawMessage{}
	if len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, fmt.Errorf("arguments: %s; want an object", shownJSON(raw))
		}
	}
	var names, wrong []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	args := arguments{}
	for _, f := range fields {
		v, ok := given[f.Name]
		delete(given, f.Name)
		if !ok || string(v) == "null" {
			if f.Required {
				wrong = append(wrong, f.Name+" is missing")
			}
			continue
		}
		value, err := f.decode(v)
		if err != nil {
			wrong = append(wrong, f.Name+": "+err.Error())
			continue
		}
		args[f.Name] = value
	}
	var unknown []string
	for name := range given {
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		wrong = append(wrong, fmt.Sprintf("there is no argument %s; %s", shown(name), wantOneOf(name, names)))
		if len(wrong) > 8 {
			break
		}
	}
	if wrong != nil {
		return nil, errors.New(strings.Join(wrong, "\n"))
	}
	return args, nil
}

func (f *field) decode(raw json.RawMessage) (any, error) {
	var s string
	isString := json.Unmarshal(raw, &s) == nil
	switch f.Type {
	case "string":
		if !isString {
			return nil, fmt.Errorf("%s; want a string", shownJSON(raw))
		}
		return s, f.check(s, raw)
	case "boolean":
		if !isString {
			s = string(raw)
		}
		if s != "true" && s != "false" { // a string is taken for exactly what it says
			return nil, fmt.Errorf("%s; want true or false", shownJSON(raw))
		}
		return s == "true", nil
	case "number":
		if !isString {
			s = string(raw)
		}
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !json.Valid([]byte(s)) || math.IsNaN(n) || n < f.Low || n > f.High {
			return nil, fmt.Errorf("%s; want a number from %v to %v", shownJSON(raw), f.Low, f.High)
		}
		return n, nil
	}
	panic("field " + f.Name + " has no type")
}

func (f *field) check(s string, raw json.RawMessage) error {
	most := f.Max
	if most == 0 {
		most = maxWord
	}
	if len(s) > most {
		return fmt.Errorf("%d bytes; want at most %d", len(s), most)
	}
	if !whole(raw) {
		return errors.New("holds half of a character (a lone surrogate, or bytes that are no UTF-8); want whole characters")
	}
	if !f.Raw && s == "" {
		return errors.New(`""; want a value, or leave it out`)
	}
	if !f.Raw && strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return fmt.Errorf("%s; want no control or invisible characters", shown(s))
	}
	return nil
}

// whole says whether a JSON string has no half of a character: no bytes that
// are no UTF-8, no lone surrogate. The decoder would replace them silently.
func whole(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	unit := func(i int) rune { // the \uXXXX at i, or -1
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if r := unit(i); utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, unit(i+6)) == utf8.RuneError {
				return false
			}
			i += 6
		}
		i++
	}
	return true
}

// shownJSON is a value of an argument as it came.
func shownJSON(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return shown(s)
	}
	if !utf8.Valid(raw) || strings.ContainsFunc(string(raw), func(r rune) bool { return !strconv.IsPrint(r) }) {
		return shown(string(raw))
	}
	return short(string(raw))
}

// shown is a value as an error may show it: escaped and short.
func shown(s string) string { return strconv.QuoteToGraphic(short(s)) }

// short cuts a string to what an error may show of it.
func short(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// wantOneOf lists what is allowed, the nearest first if one is near.
func wantOneOf(got string, names []string) string {
	want := "want one of " + strings.Join(names, ", ")
	if len(names) == 0 {
		return "want none"
	}
	best, at := min(3, len(got)), ""
	for _, n := range names {
		if d := distance(strings.ToLower(got), n); d < best {
			best, at = d, n
		}
	}
	if at != "" {
		return "did you mean " + at + "? " + want
	}
	return want
}

// distance is Levenshtein's, for short words.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, last+1, row[j]+1)
		}
	}
	return row[len(b)]
}
