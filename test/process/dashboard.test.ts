/** The dashboard in a real browser, on a running node: sign-in, live numbers, keyboard, themes, a narrow screen. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { SOURCE, TARGET } from '../../src/protocol/transitions.ts'
import { Browser, browserPath } from '../harness/browser.ts'
import { dial, home, leave, SILENT, sluice, start } from '../harness/operator.ts'
import { ask, freePort, type RunningGateway } from '../harness/program.ts'

const path = browserPath()
const skip = path === '' ? 'this machine has no Chromium: the dashboard is not tested in a browser' : false
const MARKUP = '/t/%3Cimg%20src=x%20onerror=alert(1)%3E'

let gateway: RunningGateway
let browser: Browser
let port = 0

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

function inBrowser(title: string, run: () => Promise<void> | void): void {
  test(title, { skip }, run)
}

before(async () => {
  if (skip !== false) return
  port = await freePort()
  gateway = await start(home(undefined, 'new'), [
    'management.enable=true',
    `management.port=${port}`,
    'super_admin.password=Secret-99-words',
  ])
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
  await ask(gateway.port, 'GET', MARKUP.replace('/t/', '/none/'))
  await browser.until(`[...document.querySelectorAll('#apis-table tbody tr')]
    .some(row => row.textContent.startsWith('Test:1.0.0'))`)
  // The list follows while it is in sight.
  await browser.evaluate(`document.querySelector('#failures').scrollIntoView()`)
  const all = `[...document.querySelectorAll('#failures-list details')]`
  const failure = `${all}.find(it => it.textContent.includes('/none/'))`
  await browser.until(failure)
  await browser.evaluate(`${failure}.querySelector('summary').click()`)
  await browser.until(`${failure}.querySelector('.timeline rect')`)
  assert.match(String(await browser.evaluate(`${failure}.textContent`)), /404GET \/none\/.*REQUEST_BEGIN/)
  assert.equal(await browser.evaluate(`document.querySelectorAll('#failures-list img').length`), 0)
})

inBrowser('the configuration tells values and places, without secrets', async () => {
  await browser.evaluate(`document.querySelector('#configuration-load').click()`)
  await browser.until(`document.querySelector('#configuration-table').textContent.includes('super_admin.password')`)
  const shown = await textOf('#configuration-table')
  assert.match(shown, /super_admin\.password\(set\)--set/)
  assert.doesNotMatch(shown, /Secret-99-words/)
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

inBrowser('a sign-out leads to the form, and the page is closed', async () => {
  await browser.evaluate(`document.querySelector('header form').submit()`)
  await browser.until(`document.querySelector('#password')`)
  await browser.goTo(`https://localhost:${port}/dashboard`)
  await browser.until(`location.pathname === '/dashboard/sign-in'`)
  // Nobody watches any more: the node stops at once.
  gateway.program.signal('SIGTERM')
  assert.equal((await gateway.program.exited).code, 0)
})
