/** Handlers of the operator in the real program: what one leaves behind or never ends harms one exchange. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { dial, home, leave, start } from '../harness/operator.ts'
import { eventually, type Peer } from '../harness/peers.ts'
import { freePort, LAUNCHER, Program, type RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'
import { takeResponse } from '../harness/responses.ts'
import { silentPipe } from '../harness/silent-pipe.ts'

after(leave)

/** Starts a gateway with one reactor and these modules as handlers. */
async function startWithAll(
  modules: Readonly<Record<string, string>>,
  sets: readonly string[] = [],
): Promise<RunningGateway> {
  const at = home()
  mkdirSync(join(at.path, 'handlers'))
  const names = Object.keys(modules)
  for (const name of names) writeFileSync(join(at.path, `handlers/${name}.mjs`), modules[name]!)
  const rows = names.map(name => `[[synapse_handlers]]\nname = "${name}"\nclass = "handlers/${name}.mjs"\n`)
  writeFileSync(
    join(at.path, 'deployment.toml'),
    `enabled_global_handlers = ${JSON.stringify(names)}\n${rows.join('')}`,
  )
  // The replacement of a reactor listens on the same port.
  const port = await freePort()
  const reactor = ['transport.passthru_http.reactors=1', `transport.passthru_http.listener.parameters.port=${port}`]
  return start(at, [...reactor, ...sets])
}

/** Gateways of one test; idle ones would slow down the hangs of the next. */
const own: RunningGateway[] = []
afterEach(async () => {
  await Promise.all(own.splice(0).map(({ program }) => program.kill()))
})

/** Starts a gateway for one test, with one reactor and this module as the handler `h`. */
async function startWith(code: string, sets: readonly string[] = []): Promise<RunningGateway> {
  const gateway = await startWithAll({ h: code }, sets)
  own.push(gateway)
  return gateway
}

async function ask(client: Peer, fields = ''): Promise<number> {
  client.send(`GET /t/ HTTP/1.1\r\nHost: a\r\n${fields}\r\n`)
  return (await takeResponse(client)).status
}

/** An error that throws where a line about it is made. */
const HOSTILE = "Object.defineProperty(new Error(), 'stack', { get() { throw 7 } })"

const FAILED = /"HANDLER":"([^"]*)","PHASE":"([^"]*)".*"msg":"handler failed"/

/** [what is left, the phase that leaves it, its code, status of the exchange, the named handler and phase] */
const LEFT = [
  ['a promise that rejects', 'request', 'return Promise.reject(new Error())', 500, ['h', 'request']],
  ['a promise that rejects', 'response', 'return Promise.reject(new Error())', 200, ['h', 'response']],
  ['a promise that rejects', 'end', 'return Promise.reject(new Error())', 200, ['h', 'end']],
  ['a detached promise that rejects', 'request', 'void Promise.reject(new Error())', 200, ['h', 'detached']],
  ['a detached promise without an error', 'request', 'void Promise.reject(7)', 200, ['', 'detached']],
  [
    'a use of its view behind its end',
    'request',
    'Promise.resolve().then(() => Promise.resolve()).then(() => view.setField("a", "b"))',
    200,
    ['h', 'detached'],
  ],
  ['an exit', 'request', 'process.exit(1)', 500, ['h', 'request']],
  ['an exit', 'end', 'process.exit(1)', 200, ['h', 'end']],
  ['a timer that exits', 'request', 'setTimeout(() => process.exit(1))', 200, ['h', 'detached']],
  ['an error whose stack throws', 'request', `throw ${HOSTILE}`, 500, ['h', 'request']],
  ['an error whose stack throws', 'response', `throw ${HOSTILE}`, 200, ['h', 'response']],
  ['an error whose stack throws', 'end', `throw ${HOSTILE}`, 200, ['h', 'end']],
  ['an error whose name is no text', 'end', 'throw Object.assign(new Error(), { name: Symbol() })', 200, ['h', 'end']],
  ['an error whose stack is no text', 'end', 'throw Object.assign(new Error(), { stack: 7 })', 200, ['h', 'end']],
  ['a detached error whose stack throws', 'request', `void Promise.reject(${HOSTILE})`, 200, ['', 'detached']],
  [
    'a detached error whose stack is no text',
    'request',
    'void Promise.reject(Object.assign(new Error(), { stack: 7 }))',
    200,
    ['', 'detached'],
  ],
  ['a timer that throws', 'request', 'setTimeout(() => { throw new Error() })', 200, ['h', 'detached']],
] as const

/** The module of a row of `LEFT`. */
function leaving(phase: string, code: string, path: string): string {
  return `export const synchronous = true
    export function ${phase}(view) { if (view.target.endsWith('${path}')) { ${code} } }`
}

/** A gateway with a handler for each row, which is named as its place. */
let leavers: Promise<RunningGateway> | undefined
function leaversStarted(): Promise<RunningGateway> {
  leavers ??= startWithAll(
    Object.fromEntries(LEFT.map(([, phase, code], row) => [`h${row}`, leaving(phase, code, `/bad${row}`)])),
  )
  return leavers
}

for (const [row, [what, phase, code, status, [named, when]]] of LEFT.entries()) {
  test(`a synchronous handler that leaves ${what} in ${phase} ends no reactor`, async () => {
    // Failures without a name share one line of the log for some seconds.
    const isNamed = named !== ''
    const gateway = isNamed ? await leaversStarted() : await startWith(leaving(phase, code, `/bad${row}`))
    const other = await dial(gateway)
    assert.equal(await ask(other), 200)
    const client = await dial(gateway)
    client.send(`GET /t/bad${row} HTTP/1.1\r\nHost: a\r\n\r\n`)
    assert.equal((await takeResponse(client)).status, status)
    const handler = isNamed ? `h${row}` : ''
    const [, , reported] = await gateway.program.err.until(
      new RegExp(`"HANDLER":"(${handler})","PHASE":"([^"]*)".*"msg":"handler failed"`),
    )
    assert.equal(reported, when)
    assert.deepEqual([await ask(client), await ask(other)], [200, 200])
    assert.doesNotMatch(gateway.program.err.text, /reactor died/)
  })
}

/** What a handler hangs in, as an expression. */
const HANGS = {
  loop: '(() => { for (;;) {} })()',
  pattern: "/^(a+)+$/.test('a'.repeat(40) + 'b')",
  wait: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
  generator: '[...(function* () { for (;;) {} })()]',
}
/** The default: a hang computes for so long. */
const LIMIT_MS = 500
const LIMITED = [`mediation.handlers.synchronous_timeout=${LIMIT_MS}ms`, 'mediation.handlers.timeout=1000ms']

for (const [phase, hang, status] of [
  ['request', 'loop', 504],
  ['request', 'pattern', 504],
  ['request', 'wait', 504],
  ['request', 'generator', 504],
  ['response', 'loop', 200],
  ['response', 'pattern', 200],
  ['end', 'loop', 200],
  ['end', 'wait', 200],
] as const) {
  test(`a synchronous handler that hangs in a ${hang} in ${phase} harms its own exchange alone`, async () => {
    const gateway = await startWith(
      `export const synchronous = true
      export function ${phase}(view) { if (view.target.includes('bad')) ${HANGS[hang]} }`,
      LIMITED,
    )
    // All connections of the only reactor.
    const others = await Promise.all(Array.from({ length: 20 }, () => dial(gateway)))
    for (const other of others) assert.equal(await ask(other), 200)
    const bad = await dial(gateway)
    const isIsolated = () => /"HANDLER":"h","PHASE":"\w+".*"msg":"handler isolated"/.test(gateway.program.err.text)
    // Beside other programs a handler is isolated at a later hang. Then one more runs on a thread.
    for (let isLast = false; ; isLast = isIsolated()) {
      bad.send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
      const asked = others.map(other => ask(other))
      const { status: given, body } = await takeResponse(bad)
      assert.equal(given, status)
      if (phase === 'request') assert.match(body, /102591/)
      assert.deepEqual(await Promise.all(asked), Array(20).fill(200))
      if (isLast) break
      await setTimeout(100)
    }
    const [, handler, when] = await gateway.program.err.until(FAILED)
    assert.deepEqual([handler, when], ['h', phase])
    assert.deepEqual([await ask(bad), ...(await Promise.all(others.map(other => ask(other))))], Array(21).fill(200))
    assert.doesNotMatch(gateway.program.err.text, /reactor died/)
  })
}

test('a synchronous handler on which a reactor dies is named, and the reactor is replaced', async () => {
  const gateway = await startWith(`export const synchronous = true
    export function request(view) { if (view.target.includes('bad')) process.reallyExit(1) }`)
  ;(await dial(gateway)).send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
  await gateway.program.err.until(/the synchronous handler h ran, and/)
  await gateway.program.err.until(/"msg":"reactor replaced"/)
  assert.equal(await ask(await dial(gateway)), 200)
})

test('a synchronous handler that a call of the system blocks is named, and its reactor is replaced', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pipe-'))
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const gateway = await startWith(
    `export const synchronous = true
    export function request(view) { if (view.target.includes('bad')) process.loadEnvFile('${pipe}') }`,
    LIMITED,
  )
  const client = await dial(gateway)
  // Opening the pipe waits for a writer.
  const writer = spawn('sh', ['-c', `sleep 8; : > ${pipe}`])
  client.send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
  await gateway.program.err.until(/"HANDLER":"h","PHASE":"request".*"msg":"handler isolated"/)
  await gateway.program.err.until(/"msg":"reactor replaced"/)
  assert.equal(await ask(await dial(gateway)), 200)
  writer.kill()
  rmSync(folder, { recursive: true })
})

test('a handler in a call of the system that never ends costs its reactor, and the gateway ends', async t => {
  const pipe = silentPipe(t)
  const gateway = await startWith(
    `export const synchronous = true
    export function request(view) { if (view.target.includes('bad')) process.loadEnvFile('${pipe}') }`,
    LIMITED,
  )
  ;(await dial(gateway)).send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
  await gateway.program.err.until(/the synchronous handler h ran, and/)
  await gateway.program.err.until(/"msg":"reactor replaced"/)
  // The socket of the first reactor takes no connection any more.
  for (let at = 0; at < 20; at++) assert.equal(await ask(await dial(gateway)), 200)
  gateway.program.signal('SIGTERM')
  assert.equal((await gateway.program.exited).code, 0)
})

test('D911: a handler in a call of the system that never ends while it loads fails the start, which ends', async t => {
  const at = home()
  writeFileSync(join(at.path, 'h.mjs'), `process.loadEnvFile(${JSON.stringify(silentPipe(t))})`)
  writeFileSync(
    join(at.path, 'deployment.toml'),
    'enabled_global_handlers = ["h"]\n[[synapse_handlers]]\nname = "h"\nclass = "h.mjs"\n',
  )
  const program = new Program(process.execPath, [LAUNCHER, 'start', '--home', at.path])
  t.after(() => program.kill())
  await program.err.until(/has not started within .* a call of the system that does not return/)
  assert.deepEqual(await program.exited, { code: 1, signal: null })
})

/** [where the function is from, its name, a call of it, the phase that calls it, status of the exchange] */
const WAITS = [
  ['an import', 'execSync', "execSync('sleep 60')", 'request', 500],
  ['an import', 'execFileSync', "execFileSync('sleep', ['60'])", 'response', 200],
  ['an import', 'spawnSync', "spawnSync('sleep', ['60'])", 'end', 200],
  ['a copy of its load', 'execSync', "copy('sleep 60')", 'request', 500],
  ['a copy of the module', 'execSync', "all.execSync('sleep 60')", 'request', 500],
] as const

/** A gateway with a handler for each row, which is named as its place. */
let waiters: Promise<RunningGateway> | undefined
function waitersStarted(): Promise<RunningGateway> {
  const modules = WAITS.map(([, , call, phase], row) => {
    const code = `import * as all from 'node:child_process'
      import { execSync, execFileSync, spawnSync } from 'node:child_process'
      export const synchronous = true
      const copy = execSync
      const loaded = execSync('echo loaded').toString().trim()
      export function ${phase}(view) { if (view.target.endsWith('/bad${row}')) ${call} }`
    return [`h${row}`, code]
  })
  waiters ??= startWithAll(Object.fromEntries(modules))
  return waiters
}

for (const [row, [what, name, , phase, status]] of WAITS.entries()) {
  test(`a synchronous handler that calls ${what} of ${name} in ${phase} fails at once, with the remedy`, async () => {
    const gateway = await waitersStarted()
    const [client, other] = [await dial(gateway), await dial(gateway)]
    client.send(`GET /t/bad${row} HTTP/1.1\r\nHost: a\r\n\r\n`)
    const { status: given, body } = await takeResponse(client)
    assert.equal(given, status)
    if (phase === 'request') assert.match(body, /102590/)
    const failed = new RegExp(`.*"HANDLER":"h${row}","PHASE":"([^"]*)".*"msg":"handler failed"`)
    const [line, when] = await gateway.program.err.until(failed)
    assert.equal(when, phase)
    assert.match(line, new RegExp(`"CAUSE_OF_ERROR":"${name} would stop this reactor .*synchronous`))
    assert.deepEqual([await ask(client), await ask(other)], [200, 200])
    assert.doesNotMatch(gateway.program.err.text, /reactor died|handler isolated/)
  })
}

/** [what a synchronous handler exports, the refused phase] */
const ASYNC = [
  ['export async function request() {}', 'request'],
  ['export const response = async () => {}', 'response'],
  ['export function* end() {}', 'end'],
  ['export async function* end() {}', 'end'],
] as const

for (const [code, phase] of ASYNC) {
  test(`a synchronous handler with "${code}" is not loaded, and the log names module, phase and remedy`, async () => {
    const gateway = await startWith(`export const synchronous = true\n${code}`)
    const [line] = await gateway.program.err.until(/.*"msg":"handler not loaded"/)
    assert.match(line, new RegExp(`handlers/h.mjs is synchronous, and ${phase} is async or .*leave out .synchronous.`))
    assert.equal(await ask(await dial(gateway)), 500)
  })
}

for (const [what, promise] of [
  ['a promise', 'Promise.resolve(false)'],
  ['a thenable', '{ then: resolve => resolve(false) }'],
] as const) {
  test(`a synchronous handler that returns ${what} passes no request, and runs on threads from then on`, async () => {
    const gateway = await startWith(`export const synchronous = true
      export function request(view) { if (view.target.includes('bad')) return ${promise} }`)
    const client = await dial(gateway)
    assert.equal(await ask(client), 200)
    // On the thread the promise is waited for: it refuses.
    for (const status of [500, 403]) {
      client.send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
      assert.equal((await takeResponse(client)).status, status)
    }
    const isolated = /.*"HANDLER":"h","PHASE":"request".*"msg":"handler isolated"/
    const [line] = await gateway.program.err.until(isolated)
    assert.match(line, /returned a promise: leave out `synchronous`/)
    assert.equal(await ask(client), 200)
  })
}

for (const [what, call] of [
  ['reads a pipe', 'readFileSync(PIPE)'],
  ['opens a pipe', "openSync(PIPE, 'r')"],
  ['appends to a pipe', "appendFileSync(PIPE, '')"],
  ['reads the descriptor of a pipe', 'readSync(descriptor, Buffer.alloc(1))'],
  ['reads a pipe behind a promise', 'Promise.resolve().then(() => readFileSync(PIPE))'],
] as const) {
  test(`a synchronous handler that ${what} keeps its reactor, and may read files`, async t => {
    const isDetached = call.startsWith('Promise')
    const gateway =
      await startWith(`import { appendFileSync, constants, openSync, readFileSync, readSync } from 'node:fs'
      export const synchronous = true
      const PIPE = ${JSON.stringify(silentPipe(t))}
      const descriptor = openSync(PIPE, constants.O_RDWR)
      const self = new URL(import.meta.url)
      export function request(view) {
        if (view.target.includes('bad')) { ${call} }
        readFileSync('/dev/null')
        view.setField('X-Length', String(readFileSync(self).length))
      }`)
    const [client, other] = [await dial(gateway), await dial(gateway)]
    client.send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeResponse(client)).status, isDetached ? 200 : 500)
    const [line] = await gateway.program.err.until(/.*"msg":"handler failed"/)
    assert.match(line, /Sync of a pipe, terminal or socket would stop this reactor .*synchronous/)
    assert.deepEqual([await ask(client), await ask(other)], [200, 200])
    assert.doesNotMatch(gateway.program.err.text, /reactor died|handler isolated/)
  })
}

test('a handler that is not synchronous may wait for programs', async () => {
  const gateway = await startWith(`import { execSync } from 'node:child_process'
    export function request(view) { view.setField('X-Said', execSync('echo said').toString().trim()) }`)
  assert.equal(await ask(await dial(gateway)), 200)
})

/** Code that leaves a timer behind which hangs. `hang`: an expression. */
const TIMERS = {
  setTimeout: (hang: string) => `setTimeout(() => ${hang})`,
  setInterval: (hang: string) => `setInterval(() => ${hang}, 1)`,
  setImmediate: (hang: string) => `setImmediate(() => ${hang})`,
  'an imported setTimeout': (hang: string) => `later(() => ${hang})`,
  'a setTimeout in a setTimeout': (hang: string) => `setTimeout(() => setTimeout(() => ${hang}))`,
  'a setTimeout behind an await': (hang: string) => `Promise.resolve().then(() => setTimeout(() => ${hang}))`,
}

/** Modules by what they leave behind, which loops once a request for `bad` has come. */
const LEAVING = {
  ...Object.fromEntries(
    Object.entries(TIMERS).map(([what, code]) => [
      what,
      `import { setTimeout as later } from 'node:timers'
      export const synchronous = true
      export function request(view) { if (view.target.includes('bad')) { ${code(HANGS.loop)} } }`,
    ]),
  ),
  'a timer of its start': `export const synchronous = true
    let isBad = false
    setInterval(() => { if (isBad) ${HANGS.loop} }, 1)
    export function request(view) { isBad = view.target.includes('bad') }`,
}

for (const [what, module] of Object.entries(LEAVING)) {
  test(`a synchronous handler that leaves behind ${what} that loops keeps its reactor`, async () => {
    const gateway = await startWith(module, LIMITED)
    const [client, other] = [await dial(gateway), await dial(gateway)]
    client.send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeResponse(client)).status, 200)
    const [, handler, when] = await gateway.program.err.until(FAILED)
    assert.deepEqual([handler, when], ['h', 'detached'])
    assert.deepEqual([await ask(client), await ask(other)], [200, 200])
    assert.doesNotMatch(gateway.program.err.text, /reactor died/)
  })
}

test('a reload returns isolated handlers to the reactors', async () => {
  const gateway = await startWith(
    `export const synchronous = true
    export function request(view) { if (view.target.includes('bad')) ${HANGS.loop} }
    export function response(view) { view.setField('X-Here', '1') }`,
    LIMITED,
  )
  const client = await dial(gateway)
  const here = async (): Promise<readonly string[] | undefined> => {
    client.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
    return (await takeResponse(client)).fields.get('x-here')
  }
  for (let round = 1; round <= 2; round++) {
    assert.deepEqual(await here(), ['1'])
    do {
      client.send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
      assert.equal((await takeResponse(client)).status, 504)
    } while ((await here()) !== undefined)
    gateway.program.signal('SIGHUP')
    const returned = new RegExp(`(?:"HANDLERS":"h".*"msg":"handlers run on reactors again"[^]*){${round}}`)
    await gateway.program.err.until(returned)
  }
  assert.deepEqual(await here(), ['1'])
})

const ON_WORKER = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="WSO2AM--Ext--In">
  <payloadFactory media-type="json"><format>{}</format></payloadFactory>
</sequence>`
const SCHEDULING = '/proc/self/sched'
const isSliceTold = existsSync(SCHEDULING) && /^se\.slice/m.test(readFileSync(SCHEDULING, 'latin1'))

test('D955: workers and threads of handlers have the default time slice', {
  skip: !isSliceTold && 'the system tells none',
}, async () => {
  const at = home()
  put(at, 'synapse-configs/default/sequences/WSO2AM--Ext--In.xml', ON_WORKER)
  const ended = join(at.path, 'ended')
  put(at, 'h.mjs', `import fs from 'node:fs'\nexport const end = () => fs.writeFileSync(${JSON.stringify(ended)}, '')`)
  put(at, 'deployment.toml', 'enabled_global_handlers = ["h"]\n[[synapse_handlers]]\nname = "h"\nclass = "h.mjs"\n')
  const gateway = await start(at, ['transport.passthru_http.reactors=1'])
  own.push(gateway)
  assert.equal(await ask(await dial(gateway)), 200)
  await eventually('the end of the phase', () => existsSync(ended))
  // A worker that starts has those of its reactor.
  await eventually('the default slice of workers and of the thread of the handler', () => {
    const threads = slices(gateway.program.child.pid!)
    const longest = Math.max(...threads.map(({ slice }) => slice))
    const started = threads.filter(({ name }) => name === 'WorkerThread')
    return started.length >= 2 && started.every(({ slice }) => slice === longest)
  })
})

/** Names and time slices of the threads of a program (/proc/PID/task/TID/sched). */
function slices(pid: number): readonly { readonly name: string; readonly slice: number }[] {
  const folder = `/proc/${pid}/task`
  return readdirSync(folder).flatMap(id => {
    try {
      const scheduling = readFileSync(`${folder}/${id}/sched`, 'latin1')
      const slice = Number(/^se\.slice\s*:\s*(\d+)/m.exec(scheduling)![1])
      return [{ name: readFileSync(`${folder}/${id}/comm`, 'latin1').trim(), slice }]
    } catch {
      // The thread has ended meanwhile.
      return []
    }
  })
}
