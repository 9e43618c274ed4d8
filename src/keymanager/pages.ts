/** What users see in their browsers: plain HTML without a script, which nobody may frame or add anything to. */
import { createHash } from 'node:crypto'
import { html } from 'hono/html'
import { NO_STORE } from './oauth-refusal.ts'

type Html = ReturnType<typeof html>

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:24rem;margin:4rem auto;padding:0 1rem}
label,input,button{display:block;width:100%;box-sizing:border-box;font:inherit}
input,button{padding:.5rem;margin:.25rem 0 1rem}.error{color:#b00020}`
const STYLE_SOURCE = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`

/** Where its forms lead, as a policy of content says it; none: it has no form. */
export async function pageAnswer(page: Html, status: number, formSources: readonly string[]): Promise<Response> {
  const forms = formSources.length === 0 ? "'none'" : ["'self'", ...formSources].join(' ')
  const policy = [
    ...["default-src 'none'", `style-src ${STYLE_SOURCE}`, `form-action ${forms}`],
    ...["frame-ancestors 'none'", "base-uri 'none'"],
  ]
  const headers = {
    ...NO_STORE,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': policy.join('; '),
    'X-Frame-Options': 'DENY',
    'X-Content-Type-Options': 'nosniff',
    // With `no-referrer` browsers call the origin of its own form null.
    'Referrer-Policy': 'same-origin',
  }
  return new Response(String(await page), { status, headers })
}

function framed(title: string, body: Html): Html {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>${new RawStyle()}</style></head>
<body><main><h1>${title}</h1>${body}</main></body></html>`
}

/** The library escapes whatever does not say that it is markup. */
class RawStyle extends String {
  readonly isEscaped = true
  constructor() {
    super(STYLE)
  }
}

/** What a form carries along. */
interface FormState {
  /** The request that it is about. */
  readonly request: string
  readonly token: string
}

function hidden({ request, token }: FormState): Html {
  return html`<input type="hidden" name="request" value="${request}">
<input type="hidden" name="form_token" value="${token}">`
}

/** `fault`: why the last try has failed; '' at the first. */
export function loginPage(state: FormState, client: string, user: string, fault: string): Html {
  const error = fault === '' ? '' : html`<p class="error" role="alert">${fault}</p>`
  return framed(
    'Sign in',
    html`<p>to go on to ${client}</p>${error}
<form method="post" action="/oauth2/authorize/login">${hidden(state)}
<label for="username">User name</label>
<input id="username" name="username" value="${user}" autocomplete="username" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button>Sign in</button></form>`,
  )
}

export function consentPage(state: FormState, client: string, user: string, scopes: readonly string[]): Html {
  return framed(
    'Allow access',
    html`<p>${client} asks for access in the name of ${user}:</p>
<ul>${scopes.map(scope => html`<li>${scope}</li>`)}</ul>
<form method="post" action="/oauth2/authorize/consent">${hidden(state)}
<button name="decision" value="allow">Allow</button>
<button name="decision" value="deny">Deny</button></form>`,
  )
}

/** Texts are ours alone: an address could say anything. */
const ERRORS: Readonly<Record<string, string>> = {
  invalid_client: 'The application that has sent you here is not known.',
  invalid_request: 'The application that has sent you here has asked for something that cannot be answered.',
  temporarily_unavailable: 'There were too many requests. Try again in a while.',
  server_error: 'Something has failed here. Try again in a while.',
}

/** `client`: the id that was asked with; '' where that is not told. */
export function errorPage(code: string, client: string): Html {
  const text = Object.hasOwn(ERRORS, code) ? ERRORS[code] : ERRORS.invalid_request
  return framed('This did not work', html`<p>${text}</p>${client === '' ? '' : html`<p>Application: ${client}</p>`}`)
}
