/** `/oauth2/authorize`: pages, redirects to clients, codes, sessions, and attacks on each. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { Browser, basic, type RunningKeyManager, startKeyManager, USER } from './running-key-manager.ts'

const BACK = 'https://shop.example/back'
const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
const PKCE = { code_challenge: CHALLENGE, code_challenge_method: 'S256' }

let at: RunningKeyManager
let id: string

before(async () => {
  at = await startKeyManager({ sets: ['oauth.rate_limit.per_address=-1', 'oauth.lockout.failures=4'] })
  id = (await at.client({ isPublic: true, redirectUris: [BACK, 'https://shop.example/other'] })).client.consumerKey
})
after(() => at[Symbol.asyncDispose]())

function address(parameters: Readonly<Record<string, string>>): string {
  const all = { response_type: 'code', client_id: id, redirect_uri: BACK, state: 'st', scope: 'openid', ...PKCE }
  return `${at.origin}/oauth2/authorize?${new URLSearchParams({ ...all, ...parameters })}`
}

function redeem(code: string, more: Readonly<Record<string, string>> = {}) {
  const own = { grant_type: 'authorization_code', code, client_id: id, redirect_uri: BACK, code_verifier: VERIFIER }
  return at.post('/oauth2/token', { ...own, ...more })
}

test('RFC 9700 4.1.3: a redirect URI that is not registered never receives a redirect', async () => {
  const tricks = [
    'https://shop.example/back/',
    'https://shop.example/back?x=1',
    'https://shop.example/back#',
    'https://SHOP.example/back',
    'https://shop.example/back/../back',
    'https://shop.example@evil.example/back',
    'https://shop.example:443/back',
    'http://shop.example/back',
    'https://shop.example/ba%63k',
    '//evil.example',
    'javascript:alert(1)',
    '',
  ]
  for (const trick of tricks) {
    const { status, location } = await new Browser(at).open(address({ redirect_uri: trick }))
    assert.deepEqual([status, location], [303, '/oauth2/error?error=invalid_request'], trick)
  }
  const nobody = await new Browser(at).open(address({ client_id: 'nobody' }))
  assert.equal(nobody.location, '/oauth2/error?error=invalid_client')
  const twice = await new Browser(at).open(`${address({})}&redirect_uri=https://evil.example`)
  assert.equal(twice.location, '/oauth2/error?error=invalid_request')
  const shown = await new Browser(at).open(`${at.origin}/oauth2/error?error=%3Cscript%3E&client_id=%3Cb%3E`)
  assert.equal(shown.status, 400)
  assert.ok(!shown.text.includes('<script>') && !shown.text.includes('<b>'))
})

test('RFC 6749 4.1.2.1: errors are returned to the registered redirect URI, with state and iss', async () => {
  const rows: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ response_type: '' }, 'invalid_request'],
    [{ code_challenge: '', code_challenge_method: '' }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge_method: '' }, 'invalid_request'],
    [{ code_challenge: 'short' }, 'invalid_request'],
    [{ response_mode: 'fragment' }, 'invalid_request'],
    [{ request: 'e30.e30.' }, 'request_not_supported'],
    [{ request_uri: 'https://evil.example' }, 'request_uri_not_supported'],
    [{ scope: 'a"b' }, 'invalid_scope'],
    [{ prompt: 'none login' }, 'invalid_request'],
    [{ prompt: 'none' }, 'login_required'],
    [{ max_age: '-1' }, 'invalid_request'],
  ]
  for (const [parameters, error] of rows) {
    const { status, location } = await new Browser(at).open(address(parameters))
    const { origin, pathname, searchParams } = new URL(location)
    const told = [origin + pathname, searchParams.get('error'), searchParams.get('state'), searchParams.get('iss')]
    assert.deepEqual(
      [status, ...told],
      [303, BACK, error, 'st', at.manager.settings.issuer],
      JSON.stringify(parameters),
    )
  }
})

test('a code is valid once, with the verifier and the redirect URI of its request', async () => {
  const code = async () => String((await new Browser(at).allow(address({}))).searchParams.get('code'))
  assert.equal((await redeem(await code(), { code_verifier: 'w'.repeat(43) })).body.error, 'invalid_grant')
  assert.equal((await redeem(await code(), { code_verifier: '' })).body.error, 'invalid_grant')
  const elsewhere = { redirect_uri: 'https://shop.example/other' }
  assert.equal((await redeem(await code(), elsewhere)).body.error, 'invalid_grant')
  const used = await code()
  const given = await redeem(used)
  assert.equal(given.status, 200, given.text)
  const info = () =>
    at.fetch(`${at.origin}/oauth2/userinfo`, { headers: { authorization: `Bearer ${given.body.access_token}` } })
  assert.equal((await info()).status, 200)
  assert.equal((await redeem(used)).body.error, 'invalid_grant')
  const after = await info()
  assert.equal(after.status, 401, 'RFC 6749 10.5: a replay revokes the tokens of the code')
  assert.match(after.headers.get('www-authenticate') ?? '', /^Bearer .*error="invalid_token"/)
})

test('RFC 9700 4.8.2: a verifier without a challenge is refused', async () => {
  const { client, secret } = await at.client({ redirectUris: [BACK] })
  const url = address({ client_id: client.consumerKey, code_challenge: '', code_challenge_method: '' })
  const redeemed = async (fields: object) => {
    const code = String((await new Browser(at).allow(url)).searchParams.get('code'))
    const own = { grant_type: 'authorization_code', code, redirect_uri: BACK, ...fields }
    return at.post('/oauth2/token', own, basic(client.consumerKey, secret))
  }
  assert.equal((await redeemed({ code_verifier: VERIFIER })).body.error, 'invalid_grant')
  assert.equal((await redeemed({})).status, 200)
})

test('pages have no scripts, cannot be framed, and set host-only cookies', async () => {
  const { client } = await at.client({ isPublic: true, name: '<img src=x onerror=alert(1)>', redirectUris: [BACK] })
  const shown = await new Browser(at).open(address({ client_id: client.consumerKey, login_hint: '"><script>' }))
  assert.equal(shown.status, 200)
  const policy = shown.headers.get('content-security-policy') ?? ''
  for (const part of ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self' https://shop.example"]) {
    assert.ok(policy.includes(part), policy)
  }
  assert.ok(!policy.includes('unsafe'))
  assert.equal(shown.headers.get('x-frame-options'), 'DENY')
  assert.equal(shown.headers.get('referrer-policy'), 'same-origin', 'with no-referrer the form would send Origin: null')
  assert.equal(shown.headers.get('cache-control'), 'no-store')
  assert.ok(!/<script|<img/.test(shown.text))
  const style = /<style>([\s\S]*)<\/style>/.exec(shown.text)![1]!
  assert.ok(policy.includes(createHash('sha256').update(style).digest('base64')))
  const [cookie = ''] = shown.headers.getSetCookie()
  for (const part of ['__Host-form=', 'HttpOnly', 'Secure', 'SameSite=Lax', 'Path=/']) assert.ok(cookie.includes(part))
})

test('a form of another browser, another origin or another request has no effect', async () => {
  const browser = new Browser(at)
  const login = await browser.open(address({}))
  const credentials = { username: USER.name, password: USER.password }
  const stranger = new Browser(at)
  await stranger.open(address({}))
  const refused = await stranger.submit(login, credentials)
  assert.equal(refused.status, 401)
  assert.ok(!stranger.cookies.has('__Host-session'))
  const elsewhere = await browser.submit(login, credentials, 'https://evil.example')
  assert.equal(elsewhere.status, 401)
  const victim = new Browser(at)
  const consent = await victim.submit(await victim.open(address({})), credentials)
  const request = address({ state: 'other' }).split('?')[1]!
  const forged = await victim.submit(consent, { request, decision: 'allow' })
  assert.deepEqual([forged.status, forged.location], [401, ''])
  const denied = await victim.submit(consent, { decision: 'deny' })
  assert.equal(new URL(denied.location).searchParams.get('error'), 'access_denied')
})

test('a session issues codes without pages, unless the request demands a login or consent', async () => {
  const browser = new Browser(at)
  await browser.allow(address({}))
  const silent = await browser.open(address({ prompt: 'none' }))
  assert.ok(new URL(silent.location).searchParams.has('code'))
  const more = await browser.open(address({ prompt: 'none', scope: 'openid profile' }))
  assert.equal(new URL(more.location).searchParams.get('error'), 'consent_required')
  assert.match((await browser.open(address({ prompt: 'login' }))).text, /type="password"/)
  assert.match((await browser.open(address({ prompt: 'consent' }))).text, /name="decision"/)
})

test('a changed password ends the sessions that began with the old one', async () => {
  const browser = new Browser(at)
  await browser.allow(address({}))
  assert.ok(new URL((await browser.open(address({ prompt: 'none' }))).location).searchParams.has('code'))
  const user = await at.registry.users.find(USER.name, 'carbon.super')
  await at.registry.users.setPassword(user!.id, USER.password)
  const after = await browser.open(address({ prompt: 'none' }))
  assert.equal(new URL(after.location).searchParams.get('error'), 'login_required')
})

test('wrong passwords lock the login form, and no page shows the password', async () => {
  const browser = new Browser(at)
  const fields = { username: 'mallory', password: 'planted-Secret-5' }
  let shown = await browser.open(address({}))
  for (let failure = 0; failure < 4; failure++) {
    shown = await browser.submit(shown, fields)
    assert.equal(shown.status, 401)
    assert.ok(!shown.text.includes(fields.password))
  }
  const locked = await browser.submit(shown, fields)
  assert.equal(locked.status, 429)
  assert.match(locked.headers.get('retry-after') ?? '', /^\d+$/)
  assert.ok(!at.logged.join('\n').includes(fields.password))
})
