import { Json } from "./json";

/**
 * What a handler answers at a hook point; null is no opinion. A point takes only
 * some of these: the table in the README says which.
 */
export class Verdict {
  /** allow, deny, ask, block, continue, retry or fail; empty for none. */
  decision: string = "";
  /** Why: it reaches the model. */
  reason: string = "";
  /** The key of the point's that is replaced; empty for none. */
  replaces: string = "";
  /** What goes in its place. */
  replacement: Json = Json.nothing();
  /** What the model is told besides. */
  context: string = "";
  /** What the model goes on with, where the decision is continue. */
  message: string = "";
  /** The handler failed: what it could not do. */
  error: string = "";

  /** A tool call may run. It skips a question to the user only where the user granted the extension `approve`. */
  static allow(reason: string): Verdict {
    return decide("allow", reason);
  }

  /** Refuses a tool call. */
  static deny(reason: string): Verdict {
    return decide("deny", reason);
  }

  /** Wants the user to be asked about a tool call. */
  static ask(reason: string): Verdict {
    return decide("ask", reason);
  }

  /** Stops a prompt, or gives the model the reason in the place of a result. */
  static block(reason: string): Verdict {
    return decide("block", reason);
  }

  /** Has a request that failed sent again. */
  static retry(reason: string): Verdict {
    return decide("retry", reason);
  }

  /** Has a request that failed not sent again. */
  static giveUp(reason: string): Verdict {
    return decide("fail", reason);
  }

  /** Has the model go on with a message where a turn is about to end. */
  static goOn(message: string): Verdict {
    const v = decide("continue", "");
    v.message = message;
    return v;
  }

  /** Puts another text in the place of a prompt or final answer. */
  static replaceText(text: string): Verdict {
    return replace("text", Json.text(text));
  }

  /** Gives a tool call other arguments, an object. They are checked and judged like the model's own. */
  static replaceArguments(args: Json): Verdict {
    return replace("arguments", args);
  }

  /** Gives the model another content of a result. */
  static replaceContent(content: string): Verdict {
    return replace("content", Json.text(content));
  }

  /** Answers a tool call in the tool's place. */
  static answerInPlace(content: string): Verdict {
    return replace("result", Json.object().with("content", Json.text(content)));
  }

  /** Sends a request with other parameters, an object. */
  static replaceParameters(parameters: Json): Verdict {
    return replace("parameters", parameters);
  }

  /** Leaves tools out of a request. */
  static hideTools(names: string[]): Verdict {
    return replace("hide_tools", Json.texts(names));
  }

  /** Answers a request in the model's place. */
  static answerForModel(text: string): Verdict {
    return replace("response", Json.object().with("text", Json.text(text)));
  }

  /** Tells the model something besides. */
  static addContext(text: string): Verdict {
    const v = new Verdict();
    v.context = text;
    return v;
  }

  /** The handler could not judge. What follows is the manifest's `on_failure`. */
  static fail(error: string): Verdict {
    const v = new Verdict();
    v.error = error;
    return v;
  }

  /** The verdict's JSON; empty for no opinion. */
  encode(): string {
    const json = Json.object();
    if (this.decision != "") json.with("decision", Json.text(this.decision));
    if (this.reason != "") json.with("reason", Json.text(this.reason));
    if (this.replaces != "") json.with("replace", Json.object().with(this.replaces, this.replacement));
    if (this.context != "") json.with("context", Json.text(this.context));
    if (this.message != "") json.with("message", Json.text(this.message));
    if (this.error != "") json.with("error", Json.text(this.error));
    return json.keys.length == 0 ? "" : json.toString();
  }
}

function decide(decision: string, reason: string): Verdict {
  const v = new Verdict();
  v.decision = decision;
  v.reason = reason;
  return v;
}

function replace(key: string, value: Json): Verdict {
  const v = new Verdict();
  v.replaces = key;
  v.replacement = value;
  return v;
}
