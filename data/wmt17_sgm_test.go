package data

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sgmSource and sgmReference are as WMT publishes its test sets.
const (
	sgmSource = `<srcset setid="newstest2017" srclang="any">
<doc sysid="ref" docid="abcnews.151477" genre="news" origlang="de">
<hl>
<seg id="1">28-J&auml;hriger Koch &amp; Sohn</seg>
</hl>
<p>
<seg id="2">Sie sagte: &quot;Ja&#33;&quot; & ging, 3 < 4.</seg>
<seg id="3">
 in zwei
 Zeilen </seg>
</p>
</doc>
<DOC sysid='ref' docid=second genre="news" origlang="en">
<seg id=1>Ende</seg>
</DOC>
</srcset>
`
	sgmReference = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE mteval SYSTEM "ftp://jaguar.ncsl.nist.gov/mt/resources/mteval-xml-v1.3.dtd">
<refset setid="newstest2017" srclang="any" trglang="en">
<doc sysid="ref" docid="abcnews.151477" genre="news" origlang="de">
<p>
<seg id="1">28-year-old cook &amp; son</seg>
<seg id="2">She said: &quot;Yes!&quot;</seg>
<seg id="3">on two lines</seg>
</p>
</doc>
<doc sysid="ref" docid="second" genre="news" origlang="en">
<seg id="1">the end</seg>
</doc>
</refset>
`
)

// withSGM puts a set whose validation files are these.
func withSGM(t *testing.T, source, reference string) string {
	return put(t, "europarl-v7.de-en.de", "eins\n", "europarl-v7.de-en.en", "one\n",
		"newstest2017-deen-src.de.sgm", source, "newstest2017-deen-ref.en.sgm", reference,
		"newstest2018-deen-src.de.sgm", "none", "newstest2017-ende-src.en.sgm", "none")
}

func TestOpenWMT17Sgm(t *testing.T) {
	s, err := OpenWMT17(withSGM(t, sgmSource, sgmReference), PairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Train.Len() != 1 || s.Valid.Len() != 4 {
		t.Errorf("%d + %d pairs", s.Train.Len(), s.Valid.Len())
	}
	segments, err := parseSGM("f", []byte(sgmSource))
	if err != nil {
		t.Fatal(err)
	}
	want := []segment{
		{"abcnews.151477", "1", 4, "28-Jähriger Koch & Sohn"}, {"abcnews.151477", "2", 7, `Sie sagte: "Ja!" & ging, 3 < 4.`},
		{"abcnews.151477", "3", 8, "  in zwei  Zeilen "}, {"second", "1", 14, "Ende"},
	}
	if d := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", segments)); d != "" {
		t.Error(d)
	}
	// Lines that \r\n ends are the same.
	crlf, err := parseSGM("f", []byte(strings.ReplaceAll(sgmSource, "\n", "\r\n")))
	if err != nil || len(crlf) != 4 || strings.Join(strings.Fields(crlf[2].text), " ") != "in zwei Zeilen" {
		t.Errorf("%+v, %v", crlf, err)
	}
}

// TestSgmGivesWayToText: where there is plain text to validate on it is read.
func TestSgmGivesWayToText(t *testing.T) {
	dir := put(t, "train.de", "a\n", "train.en", "b\n", "newstest2016.de", "a\n", "newstest2016.en", "b\n",
		"newstest2015-src.de.sgm", sgmSource, "newstest2015-ref.en.sgm", sgmReference)
	if s, err := OpenWMT17(dir, PairOptions{}); err != nil || s.Valid.Len() != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestWMT17SgmRefuses(t *testing.T) {
	change := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q in the text", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for name, c := range map[string]struct {
		source, reference string
		kind              Kind
		file              string // that the error is about
		part              string
	}{
		"segment lacks":        {sgmSource, change(sgmReference, `<seg id="2">She said: &quot;Yes!&quot;</seg>`, ""), BadFormat, "-ref.en.sgm", `line 8: segment "3" of document "abcnews.151477", but in its place newstest2017-deen-src.de.sgm has line 7: segment "2"`},
		"last segment lacks":   {sgmSource, change(sgmReference, `<seg id="1">the end</seg>`, ""), BadFormat, "-src.de.sgm", `line 14: segment "1" of document "second" has no reference: 4 segments, and newstest2017-deen-ref.en.sgm has 3`},
		"one too many":         {sgmSource, change(sgmReference, "the end</seg>", "the end</seg>\n<seg id=\"2\">!</seg>"), BadFormat, "-ref.en.sgm", `line 13: segment "2" of document "second" has no source: 5 segments, and newstest2017-deen-src.de.sgm has 4`},
		"other id":             {change(sgmSource, `id="2"`, `id="7"`), sgmReference, BadFormat, "-ref.en.sgm", `line 7: segment "2"`},
		"other document":       {sgmSource, change(sgmReference, `"second"`, `"other"`), BadFormat, "-ref.en.sgm", `line 12: segment "1" of document "other", but`},
		"id twice":             {change(sgmSource, `id="2"`, `id="1"`), sgmReference, BadFormat, "-src.de.sgm", `line 7: segment "1" of document "abcnews.151477" comes twice`},
		"document twice":       {change(sgmSource, "docid=second", "docid=abcnews.151477"), sgmReference, BadFormat, "-src.de.sgm", `line 13: document "abcnews.151477" comes twice`},
		"no id":                {change(sgmSource, `<seg id="2">`, `<seg>`), sgmReference, BadFormat, "-src.de.sgm", "line 7: a segment without id"},
		"no docid":             {change(sgmSource, `docid=second`, ``), sgmReference, BadFormat, "-src.de.sgm", "line 13: a document without docid"},
		"no document":          {change(sgmSource, `<DOC sysid='ref' docid=second genre="news" origlang="en">`, ""), sgmReference, BadFormat, "-src.de.sgm", `line 14: segment "1" is in no document`},
		"document in document": {change(sgmSource, "</doc>", ""), sgmReference, BadFormat, "-src.de.sgm", `line 13: document "second" begins within another, "abcnews.151477"`},
		"segment stays open":   {change(sgmSource, "3 < 4.</seg>", "3 < 4."), sgmReference, BadFormat, "-src.de.sgm", `line 7: segment "2" is not closed before the next tag in line 8`},
		"cut in a segment":     {sgmSource[:strings.Index(sgmSource, "Sie")], sgmReference, BadFormat, "-src.de.sgm", `line 7: segment "2" is not closed`},
		"cut in a document":    {sgmSource, sgmReference[:strings.Index(sgmReference, "</refset>")-len("</doc>\n")], BadFormat, "-ref.en.sgm", `line 12: document "second" is not closed: the file was cut`},
		"closed twice":         {change(sgmSource, "Ende</seg>", "Ende</seg></seg>"), sgmReference, BadFormat, "-src.de.sgm", "line 14: </seg> without a segment before it"},
		"unknown entity":       {change(sgmSource, "&auml;", "&ae;"), sgmReference, BadFormat, "-src.de.sgm", `line 4: segment "1": "&ae;" is no known character`},
		"no character":         {change(sgmSource, "&#33;", "&#x110000;"), sgmReference, BadFormat, "-src.de.sgm", `line 7: segment "2": "&#x110000;" is no known character`},
		"no segments":          {"<srcset>\n</srcset>\n", sgmReference, Empty, "-src.de.sgm", "no <seg>"},
		"not UTF-8":            {sgmSource, change(sgmReference, "cook", "caf\xe9"), BadFormat, "-ref.en.sgm", "0xe9 in line 6"},
		"no reference":         {sgmSource, "", Empty, "-ref.en.sgm", "0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenWMT17(withSGM(t, c.source, c.reference), PairOptions{})
			wantError(t, err, c.kind, c.part)
			wantError(t, err, c.kind, "newstest2017-deen"+c.file+": ")
		})
	}
	tokenised := put(t, "train.tok.de", "a\n", "train.tok.en", "b\n", "newstest2013-src.de.sgm", sgmSource, "newstest2013-ref.en.sgm", sgmReference)
	_, err := OpenWMT17(tokenised, PairOptions{})
	wantError(t, err, BadFormat, "its sentences are not tokenised, and those of train.tok.de are")
}

// FuzzSgm: whatever comes, there is a list of segments in one line each, or one error
// that names the file.
func FuzzSgm(f *testing.F) {
	f.Add([]byte(sgmSource))
	f.Add([]byte(sgmReference))
	f.Add([]byte(`<doc docid=a><seg id=1>&#0;&lt;&notit;</seg></doc>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		segments, err := parseSGM("f", text)
		if err != nil {
			wantError(t, err, KindOf(err), "f: ")
			return
		}
		size := 0
		for _, s := range segments {
			size += len(s.text)
			if strings.ContainsAny(s.text, "\r\n\x00") && !bytes.Contains(text, []byte{0}) {
				t.Errorf("%q", s.text)
			}
			if s.id == "" || s.document == "" || s.line < 1 || s.line > 1+bytes.Count(text, []byte{'\n'}) {
				t.Errorf("%+v", s)
			}
		}
		if len(segments) == 0 || size > 2*len(text) {
			t.Errorf("%d segments of %d bytes, from %d", len(segments), size, len(text))
		}
	})
}
