module github.com/wharf-agent/wharf/extensions/json-query

go 1.26.0

require (
	github.com/itchyny/gojq v0.12.20
	github.com/wharf-agent/wharf v0.0.0
)

require github.com/itchyny/timefmt-go v0.1.9 // indirect

replace github.com/wharf-agent/wharf => ../..
