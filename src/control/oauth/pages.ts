/** HTML pages for browsers: without scripts, and protected against framing and injection. */
import { createHash } from 'node:crypto'
import { html } from 'hono/html'
import { NO_STORE } from './oauth-error.ts'

type Html = ReturnType<typeof html>

const STYLE = `:root{color-scheme:light dark}
:root{--accent:light-dark(#0b6e8a,#5cc3dd);--line:light-dark(#7b8995,#61717d);--page:light-dark(#f4f6f8,#10161b)}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;margin:0;background:var(--page);color:light-dark(#17222b,#e6edf2)}
main{width:min(24rem,100% - 2rem);margin:12vh auto 2rem;padding:1.75rem;border-radius:12px;overflow-wrap:anywhere}
main{background:light-dark(#fff,#182027);border:1px solid light-dark(#d8dfe5,#2c3842)}
h1{font-size:1.4rem;line-height:1.2;margin:0 0 .5rem}p{margin:0 0 1rem}a{color:var(--accent)}
label,input,button{display:block;width:100%;font:inherit}
input{padding:.5rem .6rem;margin:.25rem 0 1rem;color:inherit;background:light-dark(#fff,#10161b)}
input,button{border-radius:6px;border:1px solid var(--line)}
button{padding:.55rem;margin:.75rem 0 0;font-weight:600;cursor:pointer}
button{border-color:var(--accent);background:var(--accent);color:light-dark(#fff,#10161b)}
button[value=deny]{background:none;color:inherit;border-color:var(--line)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.error{color:light-dark(#b00020,#ff8a80)}`
const STYLE_SOURCE = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`

/** `redirectUri`: where a form of the page may finally lead; '' for a page without a form. */
export async function pageResponse(page: Html, status: number, redirectUri = ''): Promise<Response> {
  const forms = redirectUri === '' ? "'none'" : `'self' ${cspSourceOf(redirectUri)}`
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
    // With `no-referrer` browsers send `Origin: null` for the page's own form.
    'Referrer-Policy': 'same-origin',
  }
  return new Response(String(await page), { status, headers })
}

/** CSP source of a URI: its origin, or the scheme alone of a private-use URI. */
function cspSourceOf(uri: string): string {
  const { origin, protocol } = new URL(uri)
  return origin === 'null' ? protocol : origin
}

function pageOf(title: string, body: Html): Html {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>${new RawStyle()}</style></head>
<body><main><h1>${title}</h1>${body}</main></body></html>`
}

/** Marks the style sheet as markup, so that hono does not escape it. */
class RawStyle extends String {
  readonly isEscaped = true
  constructor() {
    super(STYLE)
  }
}

/** Hidden fields of a form. */
interface FormState {
  /** The authorization request as a query. */
  readonly request: string
  readonly token: string
  /** Path to which the login form is posted; left out: that of the authorization endpoint. */
  readonly action?: string
}

function hidden({ request, token }: FormState): Html {
  return html`<input type="hidden" name="request" value="${request}">
<input type="hidden" name="form_token" value="${token}">`
}

/** `error`: why the last attempt failed; '' for none. */
export function loginPage(state: FormState, client: string, user: string, error: string): Html {
  const alert = error === '' ? '' : html`<p class="error" role="alert">${error}</p>`
  return pageOf(
    'Sign in',
    html`<p>to continue to ${client}</p>${alert}
<form method="post" action="${state.action ?? '/oauth2/authorize/login'}">${hidden(state)}
<label for="username">User name</label>
<input id="username" name="username" value="${user}" autocomplete="username" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button>Sign in</button></form>`,
  )
}

export function consentPage(state: FormState, client: string, user: string, scopes: readonly string[]): Html {
  return pageOf(
    'Allow access',
    html`<p>${client} requests access on behalf of ${user}:</p>
<ul>${scopes.map(scope => html`<li>${scope}</li>`)}</ul>
<form method="post" action="/oauth2/authorize/consent">${hidden(state)}
<button name="decision" value="allow">Allow</button>
<button name="decision" value="deny">Deny</button></form>`,
  )
}

/** `client`: the application that asks; '' where it is unknown. */
export function logoutPage(state: FormState, client: string, user: string): Html {
  const by = client === '' ? '' : html`<p>${client} asks to sign you out.</p>`
  return pageOf(
    'Sign out',
    html`${by}<p>You are signed in as ${user}.</p>
<form method="post" action="/oidc/logout/confirm">${hidden(state)}
<button>Sign out</button></form>`,
  )
}

/** `next`: path of the page that the user has asked for. */
export function signedInPage(next: string): Html {
  return pageOf('Signed in', html`<p><a href="${next}">Continue</a></p>`)
}

export function signedOutPage(): Html {
  return pageOf('Signed out', html`<p>You are signed out.</p>`)
}

/** Fixed texts: a query parameter could contain anything. */
const ERRORS: Readonly<Record<string, string>> = {
  invalid_client: 'The application that sent you here is not registered.',
  invalid_request: 'The application that sent you here made an invalid request.',
  temporarily_unavailable: 'Too many requests. Try again later.',
  server_error: 'The server failed. Try again later.',
}

/** `client`: client id to show; '' for none. */
export function errorPage(code: string, client: string): Html {
  const text = Object.hasOwn(ERRORS, code) ? ERRORS[code] : ERRORS.invalid_request
  return pageOf('Request failed', html`<p>${text}</p>${client === '' ? '' : html`<p>Application: ${client}</p>`}`)
}
