/** The dashboard in a real browser, on a running node: sign-in, live numbers, keyboard, themes, a narrow screen. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { sendCommand } from '../../src/cli/control-client.ts'
import { SOURCE, TARGET } from '../../src/protocol/transitions.ts'
import { Browser, browserPath } from '../harness/browser.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, dial, home, leave, SILENT, sluice, start } from '../harness/operator.ts'
import { ask, freePort, type Home, type RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

const path = browserPath()
const skip = path === '' ? 'this machine has no Chromium: the dashboard is not tested in a browser' : false

const LIMIT = 10
const POLICY = `policyName: Ten
defaultLimit: { type: REQUESTCOUNTLIMIT, requestCount: { timeUnit: days, unitTime: 1, requestCount: ${LIMIT} } }
`
const TOML = '[logging]\nlevel = "info"\n\n[recorder]\nsize = 100\n'
const APIS = 300
const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '</script><script>alert(2)</script>',
  '\u202Edaed si ti',
  '"><b>__proto__',
]

let at: Home
let gateway: RunningGateway
let browser: Browser
let port = 0
let trafficPort = 0

/** What is written in an element. */
async function textOf(selector: string): Promise<string> {
  return String(await browser.evaluate(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ''`))
}

async function signIn(password: string): Promise<void> {
  await browser.goTo(`https://localhost:${port}/dashboard`)
  await browser.until(`document.querySelector('#password')`)
  await browser.evaluate(`{
    document.querySelector('#username').value = 'admin'
    document.querySelector('#password').value = ${JSON.stringify(password)}
    document.querySelector('form').submit()
  }`)
}

/** The number that a state of a side shows. */
function connectionsIn(side: string, state: string): string {
  return `document.querySelector('#diagram-${side} [data-state=${state}] .number')?.textContent`
}

const inBrowser = (title: string, run: () => Promise<void> | void): void => void test(title, { skip }, run)

function project(name: string, context: string, more: object = {}): string {
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
  return openProject({ name, context, endpointConfig, ...more })
}

function startGateway(): Promise<RunningGateway> {
  const sets = ['management.enable=true', `management.port=${port}`, 'super_admin.password=Secret-99-words']
  // The one reactor that dies holds every connection, and its replacement finds the same port.
  const listening = [`listener.parameters.port=${trafficPort}`, 'reactors=1'].map(
    set => `transport.passthru_http.${set}`,
  )
  return start(at, [...sets, ...listening, 'recorder.size=200'], {
    SLUICE_TEST_HOOKS: '1',
    SLUICE_SET_SERVER_HOSTNAME: 'localhost',
  })
}

/** Texts of the cells of a row, by the text of its first cell; undefined without such a row. */
function rowOf(table: string, name: string): string {
  return `[...document.querySelectorAll('#${table} tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))
    .find(([first]) => first === ${JSON.stringify(name)})`
}

function show(section: string): Promise<unknown> {
  return browser.evaluate(`document.querySelector('#${section}').scrollIntoView()`)
}

before(async () => {
  if (skip !== false) return
  port = await freePort()
  trafficPort = await freePort()
  at = home(undefined, 'new')
  put(at, 'deployment.toml', TOML)
  put(at, 'policies/advanced/Ten.yaml', POLICY)
  put(at, 'apis/Limited/api.yaml', project('Limited', '/limited', { apiThrottlingPolicy: 'Ten' }))
  put(at, 'apis/Pets/api.yaml', project('Pets', '/pets', { securityScheme: ['oauth2'] }))
  gateway = await startGateway()
  browser = await Browser.open(path)
  await browser.setScreen({ width: 1280, height: 900 })
})
after(async () => {
  await browser?.close()
  await leave()
})

inBrowser('a wrong password shows the form again, the right one the page', async () => {
  await signIn('wrong-Password-1')
  await browser.until(`document.querySelector('.error')`)
  assert.match(await textOf('.error'), /password is wrong/)
  // The browser reports the status 401.
  browser.complaints.length = 0
  await signIn('Secret-99-words')
  await browser.until(`document.querySelector('#link')?.dataset.state === 'live'`)
  assert.equal(await textOf('#user'), 'admin')
})

inBrowser('the cookie of the session is out of reach of scripts', async () => {
  assert.equal(await browser.evaluate('document.cookie'), '')
})

inBrowser('each machine shows every state and every transition of its table', async () => {
  for (const [side, table] of Object.entries({ source: SOURCE, target: TARGET })) {
    const cells = Object.entries(table).flatMap(([from, row]) => Object.values(row).map(to => [from, to]))
    const shown = await browser.evaluate(`[...document.querySelectorAll('#diagram-${side} .edge')]
      .map(({ dataset }) => dataset.from + ' ' + dataset.to).sort()`)
    const wanted = new Set(cells.filter(([from, to]) => from !== to).map(pair => pair.join(' ')))
    assert.deepEqual(shown, [...wanted].sort(), side)
    const states = await browser.evaluate(`document.querySelectorAll('#diagram-${side} .state').length`)
    assert.equal(states, new Set(cells.flat()).size)
  }
})

inBrowser('states count the connections that are in them, and the table has the same numbers', async () => {
  const clients = await Promise.all([dial(gateway), dial(gateway), dial(gateway)])
  clients[0]!.send('GET /t/x HTTP/1.1\r\nHost: a\r\n')
  for (const client of clients.slice(1)) client.send(`GET /t${SILENT} HTTP/1.1\r\nHost: a\r\n\r\n`)
  await browser.until(`${connectionsIn('source', 'REQUEST_HEAD')} === '1'`)
  await browser.until(`${connectionsIn('source', 'REQUEST_DONE')} === '2'`)
  await browser.until(`${connectionsIn('target', 'REQUEST_DONE')} === '2'`)
  await browser.evaluate(`{
    const details = document.querySelector('#machines details')
    details.open = true
    details.scrollIntoView()
  }`)
  await browser.until(`[...document.querySelectorAll('#states-table tr')]
    .some(row => row.textContent === 'REQUEST_DONE22')`)
  for (const client of clients) client.destroy()
  await browser.until(`${connectionsIn('source', 'REQUEST_HEAD')} === '0'`)
})

inBrowser('requests reach figures, table of APIs and failures, with texts of clients as texts', async () => {
  await ask(gateway.port, 'GET', '/t/one')
  await ask(gateway.port, 'GET', '/none/%3Cimg%20src=x%20onerror=alert(1)%3E')
  await browser.until(`[...document.querySelectorAll('#apis-table tbody tr')]
    .some(row => row.textContent.startsWith('Test:1.0.0'))`)
  await browser.evaluate(`document.querySelector('#failures').scrollIntoView()`)
  const all = `[...document.querySelectorAll('#failures-list details')]`
  const failure = `${all}.find(it => it.textContent.includes('/none/'))`
  await browser.until(failure)
  await browser.evaluate(`${failure}.querySelector('summary').click()`)
  await browser.until(`${failure}.querySelector('.timeline rect')`)
  assert.match(String(await browser.evaluate(`${failure}.textContent`)), /404GET \/none\/.*REQUEST_BEGIN/)
  assert.equal(await browser.evaluate(`document.querySelectorAll('#failures-list img').length`), 0)
})

inBrowser('a list of failures stands still while a timeline is open, and its filter finds texts', async () => {
  const texts = `[...document.querySelectorAll('#failures-list summary')].map(it => it.textContent)`
  const opened = `document.querySelector('#failures-list details[open]')`
  await browser.until(opened)
  const before = await browser.evaluate(`${opened}.getBoundingClientRect().top`)
  await ask(gateway.port, 'GET', '/newer/one')
  await browser.until(`/stands still.*1 are newer/.test(document.querySelector('#failures-list .note').textContent)`)
  assert.equal(await browser.evaluate(`${opened}.getBoundingClientRect().top`), before)
  await browser.evaluate(`${opened}.querySelector('summary').click()`)
  await browser.until(`${texts}.some(text => text.includes('/newer/one'))`)
  await browser.evaluate(typed('#failures-list input', '/NEWER'))
  await browser.until(`${texts}.length === 1`)
  assert.match(String(await browser.evaluate(`${texts}[0]`)), /404GET \/newer\/oneNot Foundno API/)
  await browser.evaluate(typed('#failures-list input', ''))
})

/** Types a text into a field. */
function typed(selector: string, text: string): string {
  return `{
    const field = document.querySelector('${selector}')
    field.value = ${JSON.stringify(text)}
    field.dispatchEvent(new Event('input'))
  }`
}

inBrowser('throttled keys are told with what is used and refused', async () => {
  for (let request = 0; request < LIMIT + 3; request++) await ask(gateway.port, 'GET', '/limited/x')
  await show('limits')
  const row = rowOf('limits-table', 'api:/limited/1.0.0:1.0.0')
  await browser.until(`${row}?.[6] === '3'`)
  const [, policy, used, count, limit] = (await browser.evaluate(row)) as string[]
  assert.deepEqual([policy, used, count, limit], ['api:Ten', '100 %', '10', '10'])
  assert.equal(await browser.evaluate(`document.querySelector('#limits-table td[data-tone=bad]').textContent`), '100 %')
  assert.match(await textOf('#limits-summary'), / 1 of [\d,]+ counters are in use/)
})

inBrowser('pools, caches and threads are told with their sizes', async () => {
  const manage = <One>(request: object): Promise<One> => sendCommand<One>(at.data, { command: 'manage', request })
  await manage({ action: 'application create', name: 'shop' })
  await manage({ action: 'key generate', application: 'shop' })
  await manage({ action: 'subscription add', application: 'shop', api: 'Pets:1.0.0' })
  const { accessToken } = await manage<{ accessToken: string }>({ action: 'token', application: 'shop' })
  const client = await dial(gateway)
  for (let request = 0; request < 4; request++) {
    client.send(`GET /pets/1.0.0/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${accessToken}\r\n\r\n`)
    await client.untilText('\r\n\r\nok')
    client.take()
  }
  await show('pools')
  const [clients, tokens] = [rowOf('pools-table', 'client connections'), rowOf('caches-table', 'tokens')]
  await browser.until(`Number(${clients}?.[1]) >= 1 && Number(${clients}[2].replaceAll(',', '')) > 100`)
  await browser.until(`Number(${tokens}?.[1]) >= 1 && Number(${tokens}[2]) >= 3 && / %$/.test(${tokens}[4])`)
  for (const name of ['workers, http', 'workers, https', 'workers, background', 'key manager database'])
    await browser.until(rowOf('pools-table', name))
  for (const name of ['primary', 'control', 'reactor-0'])
    await browser.until(`/^[\\d.]+ MiB$/.test(${rowOf('threads-table', name)}?.[2])`)
  client.destroy()
})

inBrowser('the configuration tells values and where each one comes from, without secrets', async () => {
  await show('configuration')
  await browser.until(`document.querySelector('#configuration-table').textContent.includes('super_admin.password')`)
  assert.doesNotMatch(await textOf('#configuration-table'), /Secret-99-words/)
  const cells = async (key: string) =>
    (await browser.evaluate(rowOf('configuration-table', key))) as string[] | undefined
  assert.deepEqual((await cells('super_admin.password'))!.slice(1, 3), ['(set)', '--set'])
  const [, level, ofFile] = (await cells('logging.level'))!
  assert.equal(level, '"info"')
  assert.match(ofFile!, /deployment\.toml:2$/)
  const [, size, overriding] = (await cells('recorder.size'))!
  assert.equal(size, '200')
  assert.match(overriding!, /^--set; overrides .*deployment\.toml:5$/)
  assert.match((await cells('server.hostname'))![2]!, /SLUICE_SET_SERVER_HOSTNAME/)
  assert.equal(await cells('recorder.slow_threshold'), undefined)
  await browser.evaluate(`document.querySelector('#configuration-set').click()`)
  await browser.evaluate(typed('#configuration-table input', 'server.offset'))
  await browser.until(`${rowOf('configuration-table', 'server.offset')}?.[2] === 'default'`)
})

inBrowser('the policy of the page allows no markup of texts, no inline script and no inline style', async () => {
  const heads = await browser.evaluate(`Promise.all(['', '/machines', '/history', '/configuration', '/files/main.js']
    .map(path => fetch('/dashboard' + path).then(({ headers }) => Object.fromEntries(headers))))`)
  const [page, ...data] = heads as Readonly<Record<string, string>>[]
  for (const head of [page!, ...data]) {
    assert.equal(head['x-content-type-options'], 'nosniff')
    assert.equal(head['x-frame-options'], 'DENY')
    assert.equal(head['referrer-policy'], 'same-origin')
    assert.equal(head['cross-origin-resource-policy'], 'same-origin')
    assert.match(head['content-security-policy']!, /default-src 'none'.*frame-ancestors 'none'/)
    assert.doesNotMatch(head['content-security-policy']!, /unsafe|data:|\*/)
  }
  for (const head of data.slice(0, 3)) assert.equal(head['cache-control'], 'no-store')
  const markup = String(await browser.evaluate(`fetch('/dashboard').then(answer => answer.text())`))
  assert.doesNotMatch(markup, /<style|<script(?! type="module" src=)|\s(?:style|on\w+)=/)
  const tried = await browser.evaluate(`{
    const element = document.createElement('p')
    try { element.innerHTML = '<img src=x>'; 'markup' } catch (error) { error.name }
  }`)
  assert.equal(tried, 'TypeError')
  assert.match(browser.complaints.join(), /TrustedHTML/)
  browser.complaints.length = 0
})

inBrowser(`${APIS} APIs with hostile names are texts, and a reload that removes them removes their rows`, async () => {
  const names = Array.from({ length: APIS }, (_, n) => `${HOSTILE[n % HOSTILE.length]} ${n} ${'x'.repeat(n % 200)}`)
  for (const [n, name] of names.entries()) put(at, `apis/H${n}/api.yaml`, project(name, `/h${n}`))
  assert.equal((await reload(gateway)).outcome, 'applied')
  await show('apis')
  const note = `document.querySelector('#apis-table .note').textContent`
  await browser.until(`/100 shown; ${APIS + 3 - 100} more match/.test(${note})`)
  for (const [n, name] of names.slice(0, HOSTILE.length).entries()) {
    await browser.evaluate(typed('#apis-table input', `${HOSTILE[n]} ${n} `))
    await browser.until(rowOf('apis-table', `${name}:1.0.0`))
  }
  assert.equal(await browser.evaluate(`document.querySelectorAll('main img, main script, main b').length`), 0)
  for (const n of names.keys()) rmSync(join(at.path, `apis/H${n}`), { recursive: true })
  assert.equal((await reload(gateway)).outcome, 'applied')
  await browser.evaluate(typed('#apis-table input', ''))
  await browser.until(`document.querySelectorAll('#apis-table tbody tr').length === 3 && ${note} === ''`)
})

inBrowser('the page goes on while a reactor dies and is replaced', async () => {
  const held = await dial(gateway)
  held.send('GET /t/x HTTP/1.1\r\nHost: a\r\n')
  await browser.until(`${connectionsIn('source', 'REQUEST_HEAD')} === '1'`)
  await ask(gateway.healthPort, 'POST', '/test/kill')
  await browser.until(`${connectionsIn('source', 'REQUEST_HEAD')} === '0'`)
  await gateway.program.err.until(/"msg":"reactor replaced"/)
  const again = await dial(gateway)
  again.send('GET /t/x HTTP/1.1\r\nHost: a\r\n')
  await browser.until(`${connectionsIn('source', 'REQUEST_HEAD')} === '1'`)
  assert.equal(await browser.evaluate(`document.querySelector('#link').dataset.state`), 'live')
  again.destroy()
})

inBrowser('the keyboard reaches the content and moves among the states', async () => {
  await browser.evaluate('document.activeElement.blur(); scrollTo(0, 0)')
  await browser.evaluate(`document.querySelector('.skip').focus()`)
  await browser.press('Enter')
  await browser.until(`document.activeElement.id === 'main'`)
  await browser.evaluate(`document.querySelector('#diagram-source .state[tabindex="0"]').focus()`)
  await browser.press('ArrowRight')
  assert.equal(await browser.evaluate('document.activeElement.dataset.state'), 'REQUEST_HEAD')
  await browser.press('Enter')
  assert.match(await textOf('#detail-source'), /^REQUEST_HEAD: .*REQUEST_BODY → REQUEST_BODY/)
  assert.equal(await browser.evaluate(`document.activeElement.getAttribute('aria-pressed')`), 'true')
  await browser.press('Escape')
  assert.equal(await textOf('#detail-source'), '')
  // Columns sort by the keyboard, and everything that takes the focus has a name.
  await browser.evaluate(`document.querySelector('#endpoints-table th:nth-child(5) button').focus()`)
  await browser.press('Enter')
  const order = `document.querySelector('#endpoints-table th:nth-child(5)').getAttribute('aria-sort')`
  assert.equal(await browser.evaluate(order), 'descending')
  const nameless =
    await browser.evaluate(`[...document.querySelectorAll('a, button, input, select, summary, [tabindex]')]
    .filter(it => it.id !== 'main' && !(it.ariaLabel || it.textContent.trim() || it.labels?.length)).length`)
  assert.equal(nameless, 0)
  const outline = await browser.evaluate(`{
    const select = document.querySelector('#theme')
    select.focus({ focusVisible: true })
    getComputedStyle(select).outlineStyle
  }`)
  assert.equal(outline, 'solid')
})

inBrowser('themes follow the system until one is chosen', async () => {
  const background = 'getComputedStyle(document.body).backgroundColor'
  const light = await browser.evaluate(background)
  await browser.setScreen({ width: 1280, height: 900, isDark: true })
  const dark = await browser.evaluate(background)
  assert.notEqual(light, dark)
  await browser.evaluate(`{
    const select = document.querySelector('#theme')
    select.value = 'light'
    select.dispatchEvent(new Event('change'))
  }`)
  assert.equal(await browser.evaluate(background), light)
})

inBrowser('a narrow screen needs no scrolling to the side', async () => {
  await browser.setScreen({ width: 400, height: 800 })
  await browser.until(`document.querySelector('#diagram-source').classList.contains('upright')`)
  assert.ok(Number(await browser.evaluate('document.documentElement.scrollWidth')) <= 400)
  // Each machine fits into the screen's width too.
  const width = await browser.evaluate(`document.querySelector('#diagram-target svg').getBoundingClientRect().width`)
  assert.ok(Number(width) <= 400)
})

inBrowser('the parts of readiness are told, with what is wrong', async () => {
  const part = (name: string) => `[...document.querySelectorAll('#parts li')]
    .find(it => it.textContent.startsWith('${name} '))?.textContent`
  await browser.until(`${part('node')} === 'node ok'`)
  for (const name of ['key manager', 'database', 'endpoints']) await browser.until(part(name))
  assert.doesNotMatch(await textOf('#parts'), /broker|redis|traffic managers/, 'none is configured')
  await sluice(gateway.home, 'endpoints', 'off', 't/1.0.0')
  await browser.until(`/^endpoints degraded, 1 of .* not active: t.1.0.0 OFF/.test(${part('endpoints')})`)
  await sluice(gateway.home, 'endpoints', 'on', 't/1.0.0')
  await browser.until(`/^endpoints ok/.test(${part('endpoints')})`)
})

inBrowser('the page opens with the last minutes: charts begin before it was opened', async () => {
  const samples = `fetch('/dashboard/history').then(answer => answer.json()).then(Object.values)`
  await ask(gateway.port, 'GET', '/t/one')
  await browser.until(`${samples}.then(all => all.length > 2 && all.at(-1).counts.requests > all[0].counts.requests)`)
  await browser.goTo('about:blank')
  await browser.goTo(`https://localhost:${port}/dashboard`)
  // Nothing is requested any more: what the first round shows as highest comes from the samples.
  await browser.until(`document.querySelector('#link')?.dataset.state === 'live'`)
  const highest = `Number(document.querySelector('.key-table td:last-child').textContent)`
  assert.ok(Number(await browser.evaluate(highest)) > 0)
})

inBrowser('the browser has complained of nothing: no error, no violation of the policy', () => {
  assert.deepEqual(browser.complaints, [])
})

inBrowser('a gateway that restarts: the page says so, and asks for another login', async () => {
  const link = `document.querySelector('#link')`
  gateway.program.signal('SIGTERM')
  assert.equal((await gateway.program.exited).code, 0, 'a viewer does not keep the node from ending')
  await browser.until(`${link}.dataset.state === 'trouble'`)
  assert.match(await textOf('#link-text'), /^disconnected, trying again; the numbers are those of \d\d:\d\d:\d\d$/)
  gateway = await startGateway()
  await browser.until(`/The session has ended/.test(document.querySelector('.error')?.textContent)`)
  await signIn('Secret-99-words')
  await browser.until(`${link}?.dataset.state === 'live'`)
})

inBrowser('a sign-out leads to the form, and the page is closed', async () => {
  await browser.evaluate(`document.querySelector('header form').submit()`)
  await browser.until(`document.querySelector('#password')`)
  await browser.goTo(`https://localhost:${port}/dashboard`)
  await browser.until(`location.pathname === '/dashboard/sign-in'`)
  // Nobody watches any more: the node stops at once.
  gateway.program.signal('SIGTERM')
  assert.equal((await gateway.program.exited).code, 0)
})
