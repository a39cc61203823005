import { Json } from "./json";
import { Keys, Payload } from "./payload";

/** A call of one of the extension's own tools. */
export class ToolInput extends Payload {
  name: string = "";
  /** An object, which the host has checked against the input schema. */
  arguments: Json = Json.nothing();
  callId: string = "";

  fill(keys: Keys): void {
    this.name = keys.text("name");
    this.arguments = keys.any("arguments");
    this.callId = keys.text("call_id");
  }
}

/** What a tool gives back for the model. */
export class ToolOutput {
  /** A text, or a list of MCP content blocks; null for none. */
  content: Json = Json.nothing();
  /** For programs; its JSON is the content where there is none. */
  structured: Json = Json.nothing();
  /** The call failed, and the content says why. */
  isError: bool = false;

  /** A text. */
  static text(content: string): ToolOutput {
    const output = new ToolOutput();
    output.content = Json.text(content);
    return output;
  }

  /** A value for programs. */
  static structured(value: Json): ToolOutput {
    const output = new ToolOutput();
    output.structured = value;
    return output;
  }

  /** A text that says why the call failed. */
  static error(content: string): ToolOutput {
    const output = ToolOutput.text(content);
    output.isError = true;
    return output;
  }

  /** The result's JSON. */
  encode(): string {
    const json = Json.object();
    if (!this.content.isNull) json.with("content", this.content);
    else if (this.structured.isNull) json.with("content", Json.text(""));
    if (!this.structured.isNull) json.with("structured", this.structured);
    if (this.isError) json.with("is_error", Json.bool(true));
    return json.toString();
  }
}
