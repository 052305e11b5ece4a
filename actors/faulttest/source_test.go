package faulttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// account is a package of one file.
const account = `package account

func (a *Account) add(n int) error {
	if a.sum+n > a.limit {
		return a.refuse(n, "over the limit")
	}
	a.sum += n
	return nil
}
`

// beyond is a fault in that package.
var beyond = Fault{
	Name: "add beyond the limit",
	Func: "(*Account).add",
	Old:  `if a.sum+n > a.limit { return a.refuse(n, "over the limit") }`,
	New:  `if a.sum > a.limit { return a.refuse(n, "over the limit") }`,
}

// replaced returns account with one part replaced.
func replaced(t *testing.T, old, new string) string {
	t.Helper()
	if !strings.Contains(account, old) {
		t.Fatalf("account has no %q", old)
	}
	return strings.Replace(account, old, new, 1)
}

// packageOf writes the files of a package and reads its source.
func packageOf(t *testing.T, files map[string]string) *source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return readSource(t, dir)
}

func TestPlant(t *testing.T) {
	f, err := packageOf(t, map[string]string{"account.go": account}).plant(beyond)
	if err != nil {
		t.Fatal(err)
	}
	want := replaced(t, "if a.sum+n > a.limit {\n\t\treturn a.refuse(n, \"over the limit\")\n\t}", beyond.New)
	if string(f.text) != want || f.base() != "account.go" {
		t.Errorf("got %s with the fault:\n%s\nwant account.go:\n%s", f.base(), f.text, want)
	}
}

// TestForm plants the fault in sources that differ only in form.
func TestForm(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"comments":        {"account.go": replaced(t, "sum+n > a.limit {", "sum /* so far */ + n > a.limit { // never beyond it")},
		"indentation":     {"account.go": strings.ReplaceAll(account, "\t", "  \t\t")},
		"line breaks":     {"account.go": replaced(t, `n, "over the limit")`, "\n\t\t\tn,\n\t\t\t\"over the limit\",\n\t\t)")},
		"another file":    {"account.go": "package account\n\ntype Account struct{ sum, limit int }\n", "add.go": account},
		"another method":  {"account.go": account + strings.TrimPrefix(replaced(t, "*Account", "*Ledger"), "package account\n")},
		"value receiver":  {"account.go": replaced(t, "*Account", "Account")},
		"type parameters": {"account.go": replaced(t, "*Account", "*Account[T]")},
		"a copy in tests": {"account.go": account, "account_test.go": account},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := packageOf(t, files).plant(beyond)
			if err != nil {
				t.Fatal(err)
			}
			before, fault, _ := strings.Cut(string(f.text), beyond.New)
			if fault == "" || strings.Contains(before, "a.sum") {
				t.Errorf("got %s without the fault in its first method:\n%s", f.base(), f.text)
			}
		})
	}
}

// TestOldForm plants the same fault, written in other forms.
func TestOldForm(t *testing.T) {
	s := packageOf(t, map[string]string{"account.go": account})
	for _, old := range []string{
		"if a.sum+n > a.limit {\n\treturn a.refuse(n, \"over the limit\")\n}",
		"if a.sum + n > a.limit { // a comment\nreturn a.refuse(\nn,\n\"over the limit\",\n) }",
	} {
		f := beyond
		f.Old = old
		if _, err := s.plant(f); err != nil {
			t.Error(err)
		}
	}
}

// TestMisfit checks the errors of faults that cannot be planted.
func TestMisfit(t *testing.T) {
	s := packageOf(t, map[string]string{"account.go": account})
	for name, c := range map[string]struct {
		f    Fault
		want string
	}{
		"unknown function": {Fault{Func: "(*Account).deposit", Old: "a.sum += n"},
			"function (*Account).deposit not found in package account: it moved or was renamed; correct Func in the table, " +
				"or drop the fault if its mechanism is gone; closest is Account.add, account.go:7: a.sum += n"},
		"changed code": {Fault{Func: "(*Account).add", Old: "a.sum += 2*n"},
			`"a.sum += 2*n" occurs 0 times in (*Account).add (account.go), want 1: the code changed or moved; correct Old in the table, ` +
				"or drop the fault if its mechanism is gone; closest is Account.add, account.go:7: a.sum += n"},
		"twice": {Fault{Func: "(*Account).add", Old: "return"},
			`"return" occurs 2 times in (*Account).add (account.go, lines 5, 8), want 1: add to Old what stands beside the right one`},
		"a part of a token": {Fault{Func: "(*Account).add", Old: "a.su"},
			`"a.su" occurs 0 times in (*Account).add`},
		"nothing": {Fault{Func: "(*Account).add", Old: "// no code"},
			`"// no code" occurs 0 times in (*Account).add`},
		"no Go": {Fault{Func: "(*Account).add", Old: "a.sum += n", New: "a.sum +="},
			"(*Account).add (account.go) is no Go with New in place, correct it in the table: 8:"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.plant(c.f); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got error:\n%v\nwant:\n%s", err, c.want)
			}
		})
	}
}

// TestDeclaredTwice checks the error of a function that the package declares twice.
func TestDeclaredTwice(t *testing.T) {
	s := packageOf(t, map[string]string{"a.go": "package account\n\nfunc init() { a = 1 }\n\nfunc init() { b = 1 }\n"})
	want := "function init is declared 2 times in package account"
	if _, err := s.plant(Fault{Func: "init", Old: "a = 1"}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// TestImports checks that the imports that New needs are added, once.
func TestImports(t *testing.T) {
	f := beyond
	f.New = `if errors.Is(a.slices.Err, nil) { return errors.New(fmt.Sprint(n)) }`
	imported := replaced(t, "package account\n", "package account\n\nimport \"errors\"\n")
	for text, want := range map[string]string{
		account:  "package account; import \"fmt\"; import \"errors\"\n",
		imported: "package account; import \"fmt\"\n\nimport \"errors\"\n",
	} {
		changed, err := packageOf(t, map[string]string{"account.go": text}).plant(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(changed.text), want) {
			t.Errorf("got a file that begins %.60q, want %q", changed.text, want)
		}
	}
}
