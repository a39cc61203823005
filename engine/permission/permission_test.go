package permission

import "testing"

func TestDecide(t *testing.T) {
	tests := []struct {
		profile Profile
		want    map[Effect]Verdict
	}{
		{ReadOnly, map[Effect]Verdict{Unknown: Deny, Reads: Allow, Writes: Deny, Executes: Allow, Network: Ask}},
		{WorkspaceWrite, map[Effect]Verdict{Unknown: Deny, Reads: Allow, Writes: Allow, Executes: Allow, Network: Ask}},
		{FullAccess, map[Effect]Verdict{Unknown: Deny, Reads: Allow, Writes: Ask, Executes: Ask, Network: Ask}},
	}
	for _, tt := range tests {
		p, err := New(tt.profile, "")
		if err != nil {
			t.Fatal(err)
		}
		for effect, want := range tt.want {
			if got, by := p.Decide(Call{Tool: "some_tool", Effect: effect}); got != want || by != `the profile "`+string(tt.profile)+`"` {
				t.Errorf("%s: Decide(effect %d) = %v by %s; want %v", tt.profile, effect, got, by, want)
			}
		}
	}
}

func TestAnswer(t *testing.T) {
	const nobody = "it needs approval, and nobody can be asked"
	tests := []struct {
		name    string
		profile Profile
		approve Approve
		effect  Effect
		allowed bool
		why     string
	}{
		{"ask, with nobody there", WorkspaceWrite, ApproveAsk, Executes, false, nobody},
		{"never", WorkspaceWrite, ApproveNever, Executes, false, "it needs approval, and nothing is ever approved (--approve never)"},
		{"auto, confined", WorkspaceWrite, ApproveAuto, Executes, true, "approved automatically: the sandbox confines it"},
		{"auto, not confined", FullAccess, ApproveAuto, Executes, false, nobody},
		{"auto, to the network", WorkspaceWrite, ApproveAuto, Network, false, nobody},
		{"auto, of unknown effect", WorkspaceWrite, ApproveAuto, Unknown, false, nobody},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(tt.profile, tt.approve)
			if err != nil {
				t.Fatal(err)
			}
			if allowed, why := p.Answer(Call{Tool: "some_tool", Effect: tt.effect}); allowed != tt.allowed || why != tt.why {
				t.Errorf("Answer = %v, %q; want %v, %q", allowed, why, tt.allowed, tt.why)
			}
		})
	}
}

// A question that a hook wants asked is never answered by the sandbox.
func TestHooksAreNotAnsweredAutomatically(t *testing.T) {
	p, err := New(WorkspaceWrite, ApproveAuto)
	if err != nil {
		t.Fatal(err)
	}
	for _, effect := range []Effect{Reads, Writes, Executes} {
		if allowed, why := p.Answer(Call{Tool: "some_tool", Effect: effect, Asked: true}); allowed || why != "it needs approval, and nobody can be asked" {
			t.Errorf("Answer(effect %d) = %v, %q", effect, allowed, why)
		}
	}
}

// Without a sandbox, "auto" must not call a command confined.
func TestAnswerWithoutSandbox(t *testing.T) {
	p, err := New(WorkspaceWrite, ApproveAuto)
	if err != nil {
		t.Fatal(err)
	}
	for effect, want := range map[Effect]bool{Reads: true, Writes: true, Executes: false, Network: false} {
		if allowed, why := p.Unconfined().Answer(Call{Tool: "some_tool", Effect: effect}); allowed != want {
			t.Errorf("Answer(effect %d) = %v, %q; want %v", effect, allowed, why, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New("everything", ""); err == nil || err.Error() != `profile "everything": not one of read-only, workspace-write, full-access` {
		t.Errorf("New with an unknown profile: %v", err)
	}
	if _, err := New("", "always"); err == nil || err.Error() != `approval mode "always": not one of ask, never, auto` {
		t.Errorf("New with an unknown approval mode: %v", err)
	}
}
