#include "wharf.h"

/* count counts a refusal, in this and all earlier sessions; 0 is a failure. */
static int64_t count(void)
{
	wharf_json known;
	if (wharf_kv_get("refused", &known))
		return 0;
	int64_t times = wharf_as_integer(known) + 1;
	wharf_out text = {0};
	wharf_put_integer(&text, times);
	return wharf_kv_set("refused", wharf_written(&text)) ? 0 : times;
}

WHARF_HOOK(before_execute_tool, call)
{
	wharf_text command = wharf_argument(call, "command");
	if (!wharf_contains(command, "git push"))
		return WHARF_NO_OPINION;

	wharf_json value;
	if (!wharf_config("remote", &value)) {
		wharf_text remote = wharf_as_text(value);
		if (remote.length > 0 && wharf_contains(command, remote))
			return WHARF_NO_OPINION;
	}

	wharf_out reason = {0};
	wharf_put(&reason, "pushing is the user's: say what you would push");
	int64_t times = count();
	if (!times) { /* it has no memory, and refuses all the same */
		wharf_log(WHARF_WARNING, wharf_last_error.message);
		return wharf_deny(wharf_written(&reason));
	}
	wharf_put(&reason, " (refused ");
	wharf_put_integer(&reason, times);
	wharf_put(&reason, " times)");
	return wharf_deny(wharf_written(&reason));
}
