/** The server of the dashboard: sign-in, roles, fields of responses, and the feed that all viewers share. */
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDashboard, type PageFile } from '../../../src/control/dashboard/dashboard-app.ts'
import { VIEWERS_MAX } from '../../../src/control/dashboard/feed.ts'
import type { User } from '../../../src/control/registry/entities.ts'
import { SOURCE, TARGET } from '../../../src/protocol/transitions.ts'
import { ADMIN_PASSWORD, startKeyManager, USER } from '../oauth/running-key-manager.ts'

/** Milliseconds that the clock of the key manager is ahead. */
let aheadMs = 0
const running = await startKeyManager({ now: () => Date.now() + aheadMs })
const { manager, registry, origin } = running
const page: PageFile = { type: 'text/html; charset=utf-8', text: '<p>page</p>', tag: '"1"' }
let isOpen = true
let roles = ['admin']
let gathered = 0
const dashboard = openDashboard({
  manager,
  isOpen: () => isOpen,
  roles: () => roles,
  files: new Map([['index.html', page]]),
  gather: async ([part]) => {
    return part === 'history' ? { history: { 0: { nowMs: 1 } } } : { live: { requests: ++gathered } }
  },
  configuration: async () => [],
  roundMs: 20,
})
after(async () => {
  dashboard.close()
  await running[Symbol.asyncDispose]()
})
beforeEach(() => {
  isOpen = true
  roles = ['admin']
})

interface Asked {
  readonly cookies?: Readonly<Record<string, string>>
  readonly form?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
}

async function ask(path: string, { cookies = {}, form, headers = {}, method = 'GET' }: Asked = {}): Promise<Response> {
  const cookie = Object.entries(cookies).map(([name, value]) => `${name}=${value}`)
  const body = form === undefined ? { method } : { method: 'POST', body: new URLSearchParams(form) }
  const request = new Request(`${origin}${path}`, { ...body, headers: { ...headers, cookie: cookie.join('; ') } })
  return dashboard.fetch(request, { clientAddress: '127.0.0.1' })
}

/** Cookies that a response sets, by name, with their attributes. */
function cookiesOf({ headers }: Response): ReadonlyMap<string, readonly [value: string, attributes: string]> {
  return new Map(
    headers.getSetCookie().map(line => {
      const [, name, value, attributes] = /^([^=]+)=([^;]*)(.*)$/.exec(line)!
      return [name!, [value!, attributes!]]
    }),
  )
}

/** Posts the sign-in form as a browser would. */
async function signIn(username: string, password: string): Promise<Response> {
  const shown = await ask('/dashboard/sign-in')
  const [form = ''] = cookiesOf(shown).get('__Host-form')!
  const [, token = ''] = /name="form_token" value="([^"]+)"/.exec(await shown.text())!
  return ask('/dashboard/sign-in', {
    cookies: { '__Host-form': form },
    form: { username, password, form_token: token, request: '' },
  })
}

async function cookiesOfUser(name: string, password: string): Promise<Readonly<Record<string, string>>> {
  const [value = ''] = cookiesOf(await signIn(name, password)).get('__Host-dashboard')!
  return { '__Host-dashboard': value }
}

function adminCookies(): Promise<Readonly<Record<string, string>>> {
  return cookiesOfUser('admin', ADMIN_PASSWORD)
}

/** Reads server-sent events one by one. */
class Events {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #text = ''

  constructor({ body }: Response) {
    this.#reader = (body as ReadableStream<Uint8Array>).getReader()
  }

  async next(): Promise<readonly [event: string, data: object] | null> {
    for (;;) {
      const match = /^event: (\S+)\ndata: (.*)\n\n/.exec(this.#text)
      if (match !== null) {
        this.#text = this.#text.slice(match[0].length)
        return [match[1]!, JSON.parse(match[2]!)]
      }
      const { done, value } = await this.#reader.read()
      if (done) return null
      this.#text += new TextDecoder().decode(value)
    }
  }

  cancel(): Promise<void> {
    return this.#reader.cancel()
  }
}

test('without a session the page leads to the sign-in, and data is 401', async () => {
  const answer = await ask('/dashboard')
  assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/dashboard/sign-in'])
  for (const path of ['events', 'machines', 'history', 'configuration'])
    assert.equal((await ask(`/dashboard/${path}`)).status, 401, path)
  const forged = await ask('/dashboard', { cookies: { '__Host-dashboard': 'x'.repeat(43) } })
  assert.equal(forged.status, 303)
})

const REFUSALS: readonly (readonly [string, user: string, password: string, status: number, text: RegExp])[] = [
  ['a wrong password', 'admin', 'wrong-Password-1', 401, /password is wrong/],
  ['an unknown user', 'nobody', 'wrong-Password-1', 401, /password is wrong/],
  ['a user without the role', USER.name, USER.password, 403, /alice has no role/],
]
for (const [title, user, password, status, text] of REFUSALS) {
  test(`${title} is refused`, async () => {
    const answer = await signIn(user, password)
    assert.equal(answer.status, status)
    assert.match(await answer.text(), text)
    assert.equal(cookiesOf(answer).has('__Host-dashboard'), false)
  })
}

test('a form of another browser has no effect', async () => {
  const shown = await ask('/dashboard/sign-in')
  const [, token = ''] = /name="form_token" value="([^"]+)"/.exec(await shown.text())!
  const form = { username: 'admin', password: ADMIN_PASSWORD, form_token: token, request: '' }
  const answer = await ask('/dashboard/sign-in', { cookies: { '__Host-form': 'other' }, form })
  assert.equal(answer.status, 401)
  assert.equal(cookiesOf(answer).has('__Host-dashboard'), false)
})

test('an administrator gets a cookie that scripts, plain connections and other sites do not get', async () => {
  const answer = await signIn('admin', ADMIN_PASSWORD)
  assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/dashboard'])
  const [value, attributes] = cookiesOf(answer).get('__Host-dashboard')!
  assert.match(value, /^[\w-]{43}$/)
  for (const attribute of [/; Path=\/(;|$)/, /; HttpOnly/, /; Secure/, /; SameSite=Strict/])
    assert.match(attributes, attribute)
  assert.doesNotMatch(attributes, /Domain/)
})

test('the page has a strict content security policy, and is revalidated', async () => {
  const cookies = await adminCookies()
  const answer = await ask('/dashboard', { cookies })
  assert.equal(await answer.text(), page.text)
  const policy = answer.headers.get('content-security-policy')!
  assert.doesNotMatch(policy, /unsafe|\*|data:|https?:/)
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"])
    assert.ok(policy.split('; ').includes(part), part)
  const again = await ask('/dashboard', { cookies, headers: { 'if-none-match': page.tag } })
  assert.equal(again.status, 304)
})

test('a login at the key manager is enough, and its page leads on without a redirect', async () => {
  const version = await registry.users.passwordVersion('admin', 'carbon.super')
  const cookies = { '__Host-session': manager.sessions.start('admin', 'carbon.super', version) }
  const answer = await ask('/dashboard/sign-in', { cookies })
  assert.deepEqual([answer.status, answer.headers.get('refresh')], [200, '0; url=/dashboard'])
  const [value] = cookiesOf(answer).get('__Host-dashboard')!
  assert.equal((await ask('/dashboard', { cookies: { '__Host-dashboard': value } })).status, 200)
  // The cookie of the dashboard is no login at the key manager.
  assert.equal(manager.sessions.find(value), null)
})

test('a session ends with the role, the password, the switch and the sign-out', async () => {
  const cookies = await adminCookies()
  const status = async () => (await ask('/dashboard/machines', { cookies })).status
  assert.equal(await status(), 200)
  roles = ['operators']
  assert.equal(await status(), 401)
  roles = ['admin']
  isOpen = false
  assert.equal(await status(), 404)
  isOpen = true
  const stranger = await ask('/dashboard/sign-out', { form: {} })
  assert.deepEqual([stranger.status, stranger.headers.getSetCookie()], [303, []])
  assert.equal(await status(), 200)
  await ask('/dashboard/sign-out', { cookies, form: {} })
  assert.equal(await status(), 401)
})

test('machines are those of the transition tables', async () => {
  const answer = await ask('/dashboard/machines', { cookies: await adminCookies() })
  const { user, machines } = (await answer.json()) as {
    readonly user: string
    readonly machines: Record<string, { transitions: { from: string; to: string; events: string[] }[] }>
  }
  assert.equal(user, 'admin')
  for (const [side, table] of Object.entries({ source: SOURCE, target: TARGET })) {
    const told = machines[side]!.transitions.flatMap(({ from, to, events }) => events.map(it => `${from} ${it} ${to}`))
    const cells = Object.entries(table).flatMap(([from, row]) =>
      Object.entries(row).map(([event, to]) => `${from} ${event} ${to}`),
    )
    assert.deepEqual(told.sort(), cells.sort())
  }
})

test('the samples of the last minutes come in one response, without a stream', async () => {
  const answer = await ask('/dashboard/history', { cookies: await adminCookies() })
  assert.deepEqual([answer.status, await answer.json()], [200, { 0: { nowMs: 1 } }])
})

test('viewers share one gathering: first the whole state, then a patch per round; without a viewer none', async () => {
  const cookies = await adminCookies()
  const before = gathered
  const [one, other] = [
    new Events(await ask('/dashboard/events', { cookies })),
    await ask('/dashboard/events', { cookies }),
  ]
  const second = new Events(other)
  const [[firstEvent, first], [secondEvent]] = [(await one.next())!, (await second.next())!]
  assert.deepEqual([firstEvent, secondEvent], ['state', 'state'])
  let { requests } = (first as { live: { requests: number } }).live
  for (let round = 0; round < 5; round++) {
    const [event, data] = (await one.next())!
    assert.deepEqual([event, data], ['patch', { live: { requests: ++requests } }])
  }
  assert.ok(gathered - before <= 8, `${gathered - before} gatherings for 6 rounds`)
  await one.cancel()
  await second.cancel()
  const after = gathered
  await sleep(100)
  assert.ok(gathered - after <= 1, 'gathered without a viewer')
})

test('a stream ends when its user signs out, or may no longer use the dashboard', async () => {
  const cookies = await adminCookies()
  const stream = new Events(await ask('/dashboard/events', { cookies }))
  await stream.next()
  await ask('/dashboard/sign-out', { cookies, form: {} })
  const rest: string[] = []
  for (let event = await stream.next(); event !== null; event = await stream.next()) rest.push(event[0])
  assert.equal(rest.at(-1), 'signed-out')
  const others = await adminCookies()
  const second = new Events(await ask('/dashboard/events', { cookies: others }))
  await second.next()
  roles = ['operators']
  let last = ''
  for (let event = await second.next(); event !== null; event = await second.next()) last = event[0]
  assert.equal(last, 'signed-out')
})

/** The last event of a stream that has begun; `change` happens behind its first one. */
async function lastEvent(cookies: Asked['cookies'] & object, change: () => unknown): Promise<string> {
  const stream = new Events(await ask('/dashboard/events', { cookies }))
  await stream.next()
  await change()
  let last = ''
  for (let event = await stream.next(); event !== null; event = await stream.next()) last = event[0]
  return last
}

const DAY_MS = 24 * 3_600_000
const ENDINGS: readonly (readonly [string, () => unknown])[] = [
  [
    'a session that is over',
    () => {
      aheadMs += DAY_MS
    },
  ],
  [
    'a page that is switched off',
    () => {
      isOpen = false
    },
  ],
  ['a role that is taken away', async () => registry.users.update((await operator()).id, { roles: [] })],
  ['a locked account', async () => registry.users.update((await operator()).id, { isLocked: true })],
  ['a changed password', async () => registry.users.setPassword((await operator()).id, 'another-Pass-3')],
  ['an account that is removed', async () => registry.users.remove((await operator()).id)],
]
const OPERATOR = { name: 'robert', password: 'opera-Tions-5' }
async function operator(): Promise<User> {
  return (await registry.users.find(OPERATOR.name, 'carbon.super')) ?? assert.fail('there is no operator')
}

for (const [title, end] of ENDINGS) {
  test(`${title} ends the stream of its viewer`, async t => {
    const account = { name: OPERATOR.name, tenant: 'carbon.super', roles: ['admin'], claims: {} }
    await registry.users.create(account, OPERATOR.password)
    t.after(async () => {
      const left = await registry.users.find(OPERATOR.name, 'carbon.super')
      if (left !== null) await registry.users.remove(left.id)
    })
    const cookies = await cookiesOfUser(OPERATOR.name, OPERATOR.password)
    assert.equal(await lastEvent(cookies, end), 'signed-out')
  })
}

test('a page that has lost its session leads to a form that says so', async () => {
  assert.doesNotMatch(await (await ask('/dashboard/sign-in')).text(), /has ended/)
  assert.match(await (await ask('/dashboard/sign-in?ended')).text(), /The session has ended/)
})

test('a request for the head alone takes no place of a viewer (RFC 9110 9.3.2)', async () => {
  const cookies = await adminCookies()
  const before = gathered
  for (let request = 0; request <= VIEWERS_MAX; request++) {
    const { status, body } = await ask('/dashboard/events', { cookies, method: 'HEAD' })
    assert.deepEqual([status, body], [405, null])
  }
  const opened = await ask('/dashboard/events', { cookies })
  assert.equal(opened.status, 200)
  await opened.body!.cancel()
  assert.ok(gathered - before <= 1)
})

test('of 200 viewers at once as many are served as may be, and they share gatherings', async () => {
  const cookies = await adminCookies()
  const before = gathered
  const answers = await Promise.all(Array.from({ length: 200 }, () => ask('/dashboard/events', { cookies })))
  const served = answers.filter(({ status }) => status === 200)
  assert.equal(served.length, VIEWERS_MAX)
  assert.ok(answers.every(({ status }) => status === 200 || status === 503))
  const streams = served.map(answer => new Events(answer))
  for (const stream of streams) assert.equal((await stream.next())![0], 'state')
  for (const stream of streams) await stream.cancel()
  assert.ok(gathered - before < VIEWERS_MAX / 2, `${gathered - before} gatherings`)
})

test('a sign-out that another site or program of this host asks for has no effect', async () => {
  const cookies = await adminCookies()
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: 'http://localhost:3000' },
    { origin: 'null' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site' },
  ]) {
    const answer = await ask('/dashboard/sign-out', { cookies, form: {}, headers })
    assert.equal(answer.status, 403, JSON.stringify(headers))
  }
  assert.equal((await ask('/dashboard/machines', { cookies })).status, 200)
  assert.equal((await ask('/dashboard/sign-out', { cookies, form: {}, headers: { origin } })).status, 303)
  assert.equal((await ask('/dashboard/machines', { cookies })).status, 401)
})

test('the number of viewers is limited', async () => {
  const cookies = await adminCookies()
  const streams = await Promise.all(
    Array.from({ length: VIEWERS_MAX }, async () => new Events(await ask('/dashboard/events', { cookies }))),
  )
  assert.equal((await ask('/dashboard/events', { cookies })).status, 503)
  await streams[0]!.cancel()
  const freed = await ask('/dashboard/events', { cookies })
  assert.equal(freed.status, 200)
  await freed.body!.cancel()
  for (const stream of streams.slice(1)) await stream.cancel()
})
