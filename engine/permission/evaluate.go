package permission

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Shells look at some texts a second time: bash runs the substitution in an index when
// it calculates with a variable that holds a[$(rm x)], whatever quotes it came in. This
// file finds where that may happen, and which variables are set by other means than
// NAME=VALUE.

// evaluate notes what sets variables and what is evaluated a second time.
func (l *commandLine) evaluate(node syntax.Node) {
	switch n := node.(type) {
	case *syntax.Assign:
		l.assign(n)
	case *syntax.WordIter: // for NAME in WORDS
		l.keep(simpleCommand{sets: []string{n.Name.Value}})
		l.untold = l.untold || len(n.Items) == 0 || slices.ContainsFunc(n.Items, func(w *syntax.Word) bool { return !readWord(w).plain() })
	case *syntax.BinaryArithm, *syntax.UnaryArithm:
		l.counts = true
		if name, ok := assigned(n); ok {
			l.keep(simpleCommand{sets: []string{name}})
		}
	case *syntax.ArithmExp:
		l.counts = l.counts || !isNumber(n.X)
	case *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		l.counts = true
		l.openIf(n)
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			l.counts = true
			l.openIf(n)
		}
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			l.counts = true
			l.openIf(n)
		}
	case *syntax.ParamExp:
		l.counts = l.counts || n.Index != nil && !isAll(n.Index) || n.Slice != nil || n.Excl
		if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps { // ${x@P} evaluates a text
			l.open = "it evaluates what a variable holds"
		}
		if n.Exp != nil { // within double quotes, shells do not agree on what ' is there
			l.openIfQuoted(n.Exp.Word)
		}
		if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
			l.keep(simpleCommand{sets: []string{n.Param.Value}})
			l.untold = true
		}
		if n.Repl != nil {
			l.openIfQuoted(n.Repl.Orig)
			l.openIfQuoted(n.Repl.With)
		}
	}
}

// assign notes a variable whose value is not told, or tells an index that is evaluated.
func (l *commandLine) assign(a *syntax.Assign) {
	w := readWord(a.Value)
	number := a.Value != nil && len(a.Value.Parts) == 1
	if number {
		_, number = a.Value.Parts[0].(*syntax.ArithmExp)
	}
	l.untold = l.untold || a.Array != nil || !number && !w.plain()
	l.counts = l.counts || a.Index != nil && !isNumber(a.Index)
}

// plain reports whether a word is known, and nothing that arithmetic evaluates.
func (w word) plain() bool { return w.kind == known && !strings.Contains(w.text, "[") }

// assigned returns the variable that arithmetic sets.
func assigned(n syntax.Node) (name string, ok bool) {
	var x syntax.ArithmExpr
	switch n := n.(type) {
	case *syntax.BinaryArithm:
		if !strings.HasSuffix(n.Op.String(), "=") || slices.Contains([]string{"==", "!=", "<=", ">="}, n.Op.String()) {
			return "", false
		}
		x = n.X
	case *syntax.UnaryArithm:
		if n.Op != syntax.Inc && n.Op != syntax.Dec {
			return "", false
		}
		x = n.X
	}
	w, _ := x.(*syntax.Word)
	return readWord(w).text, true
}

func isNumber(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && strings.Trim(w.Lit(), "0123456789") == "" && w.Lit() != ""
}

func isAll(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// openIf opens a line whose quoted text below a node has a substitution, for it may be
// carried out after all.
func (l *commandLine) openIf(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		w, ok := n.(*syntax.Word)
		if ok && hidesCommand(readWord(w)) {
			l.open = "it may evaluate a text"
		}
		return true
	})
}

// openIfQuoted opens a line with single quotes in a word.
func (l *commandLine) openIfQuoted(w *syntax.Word) {
	if w == nil {
		return
	}
	syntax.Walk(w, func(n syntax.Node) bool {
		if _, ok := n.(*syntax.SglQuoted); ok {
			l.open = "shells do not agree on quotes in a parameter"
		}
		return true
	})
}

// hidesCommand reports whether a word has a substitution in its text.
func hidesCommand(w word) bool {
	return strings.Contains(w.text, "$(") || strings.Contains(w.text, "`") || strings.Contains(w.text, "${")
}
