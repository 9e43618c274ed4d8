/** RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0), in a browser over TLS. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, test } from 'node:test'
import { ADMIN_PASSWORD, basic, Browser, type RunningKeyManager, startKeyManager, USER } from './running-key-manager.ts'

const BACK = 'https://shop.example/back'
const BYE = 'https://shop.example/bye'

let at: RunningKeyManager
let nowMs = Date.now()
before(async () => {
  at = await startKeyManager({ now: () => nowMs })
})
after(() => at[Symbol.asyncDispose]())

/** A client with a browser that has logged in, and the ID token of that login. */
async function loggedIn(browser = new Browser(at)) {
  const { client, secret } = await at.client()
  const id = client.consumerKey
  const query = new URLSearchParams({ response_type: 'code', client_id: id, redirect_uri: BACK, scope: 'openid' })
  const authorize = `${at.origin}/oauth2/authorize?${query}`
  const code = (await browser.allow(authorize)).searchParams.get('code')!
  const form = { grant_type: 'authorization_code', code, redirect_uri: BACK }
  const { body } = await at.post('/oauth2/token', form, basic(id, secret))
  return { browser, id, secret, authorize, idToken: String(body.id_token), accessToken: String(body.access_token) }
}

function logoutUrl(parameters: Readonly<Record<string, string>>): string {
  return `${at.origin}/oidc/logout?${new URLSearchParams(parameters)}`
}

/** Whether the browser still has a session. */
async function isLoggedIn(browser: Browser, authorize: string): Promise<boolean> {
  const { location } = await browser.open(`${authorize}&prompt=none`)
  return new URL(location).searchParams.get('error') !== 'login_required'
}

test('an ID token of the session ends it, and the browser goes back with the state', async () => {
  const { browser, idToken, authorize } = await loggedIn()
  const { status, location, headers } = await browser.open(
    logoutUrl({ id_token_hint: idToken, post_logout_redirect_uri: BACK, state: 'a&b' }),
  )
  assert.deepEqual([status, location], [303, `${BACK}?state=a%26b`])
  assert.match(headers.getSetCookie().join(), /__Host-session=; Max-Age=0; Path=\/; HttpOnly; Secure/)
  assert.equal(await isLoggedIn(browser, authorize), false)
})

test('without a redirect URI the browser stays on a page', async () => {
  const { browser, idToken, authorize } = await loggedIn()
  const { status, text } = await browser.open(logoutUrl({ id_token_hint: idToken }))
  assert.equal(status, 200)
  assert.match(text, /You are signed out\./)
  assert.equal(await isLoggedIn(browser, authorize), false)
})

test('the user is asked where the request has no ID token, and signs out', async () => {
  const { browser, id, authorize } = await loggedIn()
  const asked = await browser.open(logoutUrl({ client_id: id, post_logout_redirect_uri: BACK, state: 's' }))
  assert.equal(asked.status, 200)
  assert.match(asked.text, /Shop asks to sign you out.*You are signed in as alice/s)
  assert.match(asked.headers.get('content-security-policy')!, /form-action 'self' https:\/\/shop\.example;/)
  assert.equal(await isLoggedIn(browser, authorize), true)
  const done = await browser.submit(asked, {})
  assert.deepEqual([done.status, done.location], [303, `${BACK}?state=s`])
  assert.equal(await isLoggedIn(browser, authorize), false)
})

test('the user is asked where the ID token is of an earlier session', async () => {
  const { browser, idToken } = await loggedIn()
  nowMs += 5000
  await browser.open(logoutUrl({ id_token_hint: idToken }))
  const { authorize } = await loggedIn(browser)
  const asked = await browser.open(logoutUrl({ id_token_hint: idToken }))
  assert.match(asked.text, /<button>Sign out<\/button>/)
  assert.equal(await isLoggedIn(browser, authorize), true)
})

test('an expired ID token of the session still ends it', async () => {
  const { browser, idToken, authorize } = await loggedIn()
  for (let i = 0; i < 3; i++) {
    nowMs += 25 * 60_000
    assert.equal(await isLoggedIn(browser, authorize), true)
  }
  await browser.open(logoutUrl({ id_token_hint: idToken }))
  assert.equal(await isLoggedIn(browser, authorize), false)
})

test('a form that was not shown to this browser, or comes from another site, logs nobody out', async () => {
  const { browser, authorize } = await loggedIn()
  const other = await loggedIn()
  const foreign = await other.browser.open(logoutUrl({}))
  const again = await browser.submit(foreign, {})
  assert.match(again.text, /<button>Sign out<\/button>/)
  const own = await browser.open(logoutUrl({}))
  await browser.submit(own, {}, 'https://evil.example')
  assert.equal(await isLoggedIn(browser, authorize), true)
  await browser.submit(own, {})
  assert.equal(await isLoggedIn(browser, authorize), false)
})

test('without a session the browser goes back at once', async () => {
  const { idToken } = await loggedIn()
  const { status, location } = await new Browser(at).open(
    logoutUrl({ id_token_hint: idToken, post_logout_redirect_uri: BACK }),
  )
  assert.deepEqual([status, location], [303, BACK])
})

test('a posted form is a logout request too; without cookies it continues as a navigation', async () => {
  const { browser, idToken, authorize } = await loggedIn()
  const form = { id_token_hint: idToken, post_logout_redirect_uri: BACK }
  const crossSite = await new Browser(at).open(`${at.origin}/oidc/logout`, form, 'https://shop.example')
  assert.equal(crossSite.status, 303)
  const end = await browser.open(`${at.origin}${crossSite.location}`)
  assert.deepEqual([end.status, end.location], [303, BACK])
  assert.equal(await isLoggedIn(browser, authorize), false)
  const other = await loggedIn()
  const posted = await other.browser.open(`${at.origin}/oidc/logout`, { ...form, id_token_hint: other.idToken })
  assert.deepEqual([posted.status, posted.location], [303, BACK])
  assert.equal(await isLoggedIn(other.browser, other.authorize), false)
})

test('a request that is wrong logs nobody out and leads nowhere', async () => {
  const { browser, id, idToken, accessToken, authorize } = await loggedIn()
  const other = await at.client({ redirectUris: ['https://other.example/back'] })
  const [head = '', payload = ''] = idToken.split('.')
  const none = `${Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url')}.${payload}.`
  const keyed = `${Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')}.${payload}`
  const hmac = `${keyed}.${createHmac('sha256', 'key').update(keyed).digest('base64url')}`
  const changed = Buffer.from(payload, 'base64url').toString().replace('alice', 'admin')
  const forged = `${head}.${Buffer.from(changed).toString('base64url')}.${idToken.split('.')[2]!}`
  for (const parameters of [
    { id_token_hint: idToken, post_logout_redirect_uri: 'https://evil.example/' },
    { id_token_hint: idToken, post_logout_redirect_uri: `${BACK}/more` },
    { id_token_hint: idToken, post_logout_redirect_uri: 'https://other.example/back' },
    { id_token_hint: idToken, client_id: other.client.consumerKey },
    { post_logout_redirect_uri: BACK },
    { client_id: 'unknown', post_logout_redirect_uri: BACK },
    { id_token_hint: accessToken },
    { id_token_hint: none },
    { id_token_hint: hmac },
    { id_token_hint: forged },
    { id_token_hint: 'nonsense' },
    { id_token_hint: idToken, state: 'a'.repeat(2049) },
  ] as Readonly<Record<string, string>>[]) {
    const { status, location } = await browser.open(logoutUrl(parameters))
    assert.deepEqual(
      [status, new URL(location, at.origin).pathname],
      [303, '/oauth2/error'],
      JSON.stringify(parameters),
    )
  }
  const repeated = await browser.open(`${logoutUrl({ client_id: id })}&client_id=${id}`)
  assert.equal(new URL(repeated.location, at.origin).pathname, '/oauth2/error')
  assert.equal(await isLoggedIn(browser, authorize), true)
})

test('a client with post_logout_redirect_uris of its own may name these alone', async () => {
  const registered = await at.fetch(`${at.origin}/oauth2/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...basic('admin', ADMIN_PASSWORD) },
    body: JSON.stringify({ redirect_uris: [BACK], post_logout_redirect_uris: [BYE] }),
  })
  const { client_id } = (await registered.json()) as { client_id: string }
  const browser = new Browser(at)
  const good = await browser.open(logoutUrl({ client_id, post_logout_redirect_uri: BYE }))
  assert.deepEqual([good.status, good.location], [303, BYE])
  const bad = await browser.open(logoutUrl({ client_id, post_logout_redirect_uri: BACK }))
  assert.equal(new URL(bad.location, at.origin).pathname, '/oauth2/error')
})

test('tokens that the client has stay valid', async () => {
  const { browser, id, secret, idToken, accessToken } = await loggedIn()
  await browser.open(logoutUrl({ id_token_hint: idToken }))
  const { body } = await at.post('/oauth2/introspect', { token: accessToken }, basic(id, secret))
  assert.equal(body.active, true)
  assert.equal(body.username, `${USER.name}@carbon.super`)
})
