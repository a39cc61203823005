/* Tells what the header reads of a JSON text. */
#include "wharf.h"

static wharf_result read(wharf_json arguments)
{
	wharf_json value = wharf_get(wharf_parse(wharf_as_text(wharf_get(arguments, "json"))), "k"), rest = value, item;
	wharf_text text = wharf_as_text(value);
	double number = wharf_as_number(value);
	int64_t bits, items = 0;
	__builtin_memcpy(&bits, &number, sizeof bits);
	while (wharf_next(&rest, &item))
		items++;
	wharf_out o = {0};
	wharf_put(&o, "{\"raw\":");
	wharf_put_string(&o, wharf_raw(value));
	if (text.at) {
		wharf_put(&o, ",\"text\":");
		wharf_put_string(&o, text);
	}
	wharf_put(&o, ",\"integer\":");
	wharf_put_integer(&o, wharf_as_integer(value));
	wharf_put(&o, ",\"bits\":");
	wharf_put_integer(&o, bits);
	wharf_put(&o, ",\"items\":");
	wharf_put_integer(&o, items);
	wharf_put(&o, wharf_as_bool(value) ? ",\"bool\":true}" : ",\"bool\":false}");
	return wharf_content(wharf_written(&o));
}

WHARF_TOOLS({"read", read})
