package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// repository is the folder of README.md.
const repository = "../.."

// Every verb has a section in docs/cli.md that names all its flags.
func TestVerbsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(text), "\n## ") {
		title, body, _ := strings.Cut(s, "\n")
		sections[title] = body
	}
	var walk func(c *cobra.Command, section string)
	walk = func(c *cobra.Command, section string) {
		if !strings.Contains(section, "`"+c.CommandPath()) {
			t.Errorf("docs/cli.md does not say `%s …`", c.CommandPath())
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(section, "--"+f.Name) {
				t.Errorf("docs/cli.md: the section of %s does not name --%s", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub, section)
		}
	}
	for _, c := range newRoot(&app{}).Commands() {
		switch {
		case c.Hidden, c.Name() == "help", c.Name() == "completion": // cobra's own
		case sections[c.Name()] == "":
			t.Errorf("docs/cli.md has no section %q", "## "+c.Name())
		default:
			walk(c, sections[c.Name()])
		}
	}
}

// Links between the pages lead somewhere.
func TestLinks(t *testing.T) {
	pages := []string{filepath.Join(repository, "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 10 {
		t.Fatalf("only %d pages found", len(pages))
	}
	link := regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target := m[1]
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), target)); err != nil {
				t.Errorf("%s links to %s: %v", page, target, err)
			}
		}
	}
}
