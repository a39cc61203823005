//! The tool html_to_text makes readable text of HTML, which may be anybody's:
//! it is read here, inside the sandbox, in time that grows with its length.

mod entity;
mod page;
mod tag;

use page::Page;
use tag::{Token, Tokens};
use wharf::{HttpRequest, Result, ToolInput};

wharf::tools!(html_to_text);

fn html_to_text(input: ToolInput) -> Result<String> {
    let html = fetch(&input)?;
    let most = input.arguments.get("max_chars").as_int().unwrap_or(20_000);
    Ok(render(&html, most.clamp(100, 200_000) as usize))
}

/// The HTML that a call is about.
fn fetch(input: &ToolInput) -> Result<String> {
    let given: Vec<_> = ["html", "path", "url"].into_iter().filter(|key| !input.arguments.get(key).is_null()).collect();
    let value = match given[..] {
        [key] => input.arguments.str(key),
        _ => return Err("give one of html, path and url".into()),
    };
    match given[0] {
        "path" => Ok(String::from_utf8_lossy(&wharf::read_file(value)?).into_owned()),
        "url" => {
            let response = wharf::http(HttpRequest { url: value.to_string(), ..HttpRequest::default() })?;
            if response.status != 200 {
                return Err(format!("{}: status {}", response.url, response.status).into());
            }
            Ok(response.text())
        }
        _ => Ok(value.to_string()),
    }
}

/// Makes text of HTML, of about so many characters at most.
fn render(html: &str, most: usize) -> String {
    let mut page = Page::new(most);
    for token in Tokens::of(html) {
        match token {
            Token::Text(text) => page.text(&entity::decode(text)),
            Token::Open(tag) => page.open(&tag),
            Token::Close(name) => page.close(&name),
        }
        if page.is_full() {
            break;
        }
    }
    page.finish()
}
