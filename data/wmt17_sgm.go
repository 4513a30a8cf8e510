package data

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"optimus/data/source"
)

const sgmLimit = 64 << 20 // bytes; the real files have 1 MB

const doSGM = "fetch both files again: each segment of the source has its reference, in the same document, with the same id"

// sgmEnds are the ends of the names of a test set's files, by language.
func sgmEnds() [2]string {
	l := wmtLanguages()
	return [2]string{"-src." + l[0] + ".sgm", "-ref." + l[1] + ".sgm"}
}

// Of the tags but these two matter. The files are no XML, in spite of their looks: < and
// & stand for themselves in places, and values of attributes may have no quotes.
var (
	sgmTag       = regexp.MustCompile(`(?i)<(/?)(doc|seg)(\s[^<>]*)?>`)
	sgmAttribute = regexp.MustCompile(`(?i)\s(docid|id)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))`)
	sgmEntity    = regexp.MustCompile(`&(#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);`)
)

// segment is a sentence of a test set.
type segment struct {
	document, id string
	line         int
	text         string
}

func (s segment) String() string {
	return fmt.Sprintf("line %d: segment %.20q of document %.60q", s.line, s.id, s.document)
}

// readSGM appends the sentences of a test set, whose two files hold them as segments of
// documents.
func (p *parallel) readSGM(base source.Path) error {
	var sides [2][]segment
	for i, end := range sgmEnds() {
		text, err := readAll(opWMT17, base.Append(end), sgmLimit, doWMT17)
		if err != nil {
			return err
		}
		if sides[i], err = parseSGM(base.Append(end).String(), text); err != nil {
			return err
		}
	}
	if err := compareSGM(base, sides[0], sides[1]); err != nil {
		return err
	}
	for i, side := range sides {
		for _, s := range side {
			p[i] = append(append(p[i], s.text...), '\n')
		}
	}
	return nil
}

// compareSGM wants the same documents and segments in the same order.
func compareSGM(base source.Path, source, reference []segment) error {
	fail := func(side int, format string, args ...any) error {
		return &Error{Op: opWMT17, Path: base.Append(sgmEnds()[side]).String(), Kind: BadFormat, Detail: fmt.Sprintf(format, args...), Do: doSGM}
	}
	names := [2]string{base.Base() + sgmEnds()[0], base.Base() + sgmEnds()[1]}
	both := min(len(source), len(reference))
	for i, r := range reference[:both] {
		if s := source[i]; s.document != r.document || s.id != r.id {
			return fail(1, "%v, but in its place %s has %v", r, names[0], s)
		}
	}
	switch {
	case len(source) > both:
		return fail(0, "%v has no reference: %d segments, and %s has %d", source[both], len(source), names[1], both)
	case len(reference) > both:
		return fail(1, "%v has no source: %d segments, and %s has %d", reference[both], len(reference), names[0], both)
	}
	return nil
}

// parseSGM returns the segments of a file.
func parseSGM(path string, text []byte) ([]segment, error) {
	p := &sgmParser{path: path, text: text, line: 1, documents: map[string]bool{}}
	for _, at := range sgmTag.FindAllSubmatchIndex(text, -1) {
		if err := p.tag(at); err != nil {
			return nil, err
		}
	}
	switch {
	case p.open:
		return nil, p.fail(p.now.line, "segment %.20q is not closed", p.now.id)
	case p.inside:
		return nil, p.fail(p.line, "document %.60q is not closed: the file was cut", p.now.document)
	case len(p.segments) == 0:
		return nil, &Error{Op: opWMT17, Path: path, Kind: Empty, Detail: "there is no <seg> in it", Do: doSGM}
	}
	return p.segments, nil
}

// sgmParser goes through a file from tag to tag.
type sgmParser struct {
	path      string
	text      []byte
	line, at  int // of the last tag
	documents map[string]bool
	inside    bool // a document
	ids       map[string]bool
	open      bool // a segment: now, whose text begins at from
	now       segment
	from      int
	segments  []segment
}

func (p *sgmParser) fail(line int, format string, args ...any) error {
	return &Error{Op: opWMT17, Path: p.path, Kind: BadFormat, Detail: fmt.Sprintf("line %d: ", line) + fmt.Sprintf(format, args...), Do: doSGM}
}

// tag takes the next tag, whose parts lie at these places.
func (p *sgmParser) tag(at []int) error {
	p.line += bytes.Count(p.text[p.at:at[0]], []byte{'\n'})
	p.at = at[0]
	closes, name := at[2] < at[3], strings.ToLower(string(p.text[at[4]:at[5]]))
	attributes := ""
	if at[6] >= 0 {
		attributes = string(p.text[at[6]:at[7]])
	}
	switch {
	case closes && name == "seg":
		return p.closeSegment(at[0], at[1])
	case p.open:
		return p.fail(p.now.line, "segment %.20q is not closed before the next tag in line %d", p.now.id, p.line)
	case closes:
		p.inside = false
		return nil
	case name == "doc":
		id := sgmValue(attributes, "docid")
		switch {
		case p.inside:
			return p.fail(p.line, "document %.60q begins within another, %.60q", id, p.now.document)
		case id == "":
			return p.fail(p.line, "a document without docid")
		case p.documents[id]:
			return p.fail(p.line, "document %.60q comes twice; of several references leave one", id)
		}
		p.documents[id], p.ids, p.inside, p.now.document = true, map[string]bool{}, true, id
		return nil
	}
	id := sgmValue(attributes, "id")
	switch {
	case !p.inside:
		return p.fail(p.line, "segment %.20q is in no document", id)
	case id == "":
		return p.fail(p.line, "a segment without id")
	case p.ids[id]:
		return p.fail(p.line, "segment %.20q of document %.60q comes twice", id, p.now.document)
	}
	p.ids[id], p.open, p.from = true, true, at[1]
	p.now.id, p.now.line = id, p.line
	return nil
}

func (p *sgmParser) closeSegment(end, behind int) error {
	if !p.open {
		return p.fail(p.line, "%s without a segment before it", p.text[end:behind])
	}
	text, unknown := unescape(string(p.text[p.from:end]))
	if unknown != "" {
		return p.fail(p.now.line, "segment %.20q: %.40q is no known character", p.now.id, unknown)
	}
	p.now.text, p.open = text, false
	p.segments = append(p.segments, p.now)
	return nil
}

// sgmValue returns the value of an attribute, "" if there is none.
func sgmValue(attributes, name string) string {
	for _, m := range sgmAttribute.FindAllStringSubmatch(attributes, -1) {
		if strings.EqualFold(m[1], name) {
			return strings.TrimSpace(m[2] + m[3] + m[4])
		}
	}
	return ""
}

// unescape returns a segment's text in one line, with characters for their names, and
// the first name that is unknown. An & that begins none stands for itself.
func unescape(text string) (line, unknown string) {
	line = sgmEntity.ReplaceAllStringFunc(text, func(name string) string {
		character := html.UnescapeString(name)
		known := character != name && utf8.RuneCountInString(character) <= 2 && !strings.ContainsAny(character, "\x00\ufffd")
		if !known && unknown == "" {
			unknown = name
		}
		return character
	})
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(line), unknown
}
