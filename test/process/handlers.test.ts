/** Handlers of the operator in the real program: what one leaves behind or never ends harms one exchange. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { dial, home, leave, start } from '../harness/operator.ts'
import type { Peer } from '../harness/peers.ts'
import { freePort, type RunningGateway } from '../harness/program.ts'
import { takeResponse } from '../harness/responses.ts'

after(leave)

/** Starts a gateway with one reactor and this module as the handler `h`. */
async function startWith(code: string, sets: readonly string[] = []): Promise<RunningGateway> {
  const at = home()
  mkdirSync(join(at.path, 'handlers'))
  writeFileSync(join(at.path, 'handlers/h.mjs'), code)
  const rows = '[[synapse_handlers]]\nname = "h"\nclass = "handlers/h.mjs"\n'
  writeFileSync(join(at.path, 'deployment.toml'), `enabled_global_handlers = ["h"]\n${rows}`)
  // The replacement of a reactor listens on the same port.
  const port = await freePort()
  const own = ['transport.passthru_http.reactors=1', `transport.passthru_http.listener.parameters.port=${port}`]
  return start(at, [...own, ...sets])
}

async function ask(client: Peer, fields = ''): Promise<number> {
  client.send(`GET /t/ HTTP/1.1\r\nHost: a\r\n${fields}\r\n`)
  return (await takeResponse(client)).status
}

const FAILED = /"HANDLER":"([^"]*)","PHASE":"([^"]*)".*"msg":"handler failed"/

for (const [what, phase, code, status, reported] of [
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
  ['a timer that throws', 'request', 'setTimeout(() => { throw new Error() })', 200, ['h', 'detached']],
] as const) {
  test(`a synchronous handler that leaves ${what} in ${phase} ends no reactor`, async () => {
    const gateway = await startWith(`export const synchronous = true
      export function ${phase}(view) { if (view.target.includes('bad')) { ${code} } }`)
    const other = await dial(gateway)
    assert.equal(await ask(other), 200)
    const client = await dial(gateway)
    client.send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeResponse(client)).status, status)
    const [, handler, when] = await gateway.program.err.until(FAILED)
    assert.deepEqual([handler, when], reported)
    assert.deepEqual([await ask(client), await ask(other)], [200, 200])
    assert.doesNotMatch(gateway.program.err.text, /reactor died/)
  })
}

for (const phase of ['request', 'response', 'end']) {
  test(`a synchronous handler that never ends in ${phase} is named, then harms its own exchange alone`, async () => {
    const gateway = await startWith(
      `export const synchronous = true
      export function ${phase}(view) { if (view.target.includes('bad')) for (;;) {} }`,
      ['mediation.handlers.timeout=1000ms'],
    )
    ;(await dial(gateway)).send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
    const died = /"CAUSE_OF_ERROR":"no heartbeat from reactor 0 for 5000 ms; the synchronous handler h ran, and/
    await gateway.program.err.until(died)
    await gateway.program.err.until(/"msg":"reactor replaced"/)
    const [bad, other] = [await dial(gateway), await dial(gateway)]
    bad.send('GET /t/bad HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal(await ask(other), 200)
    const { status, body } = await takeResponse(bad)
    assert.equal(status, phase === 'request' ? 504 : 200)
    if (phase === 'request') assert.match(body, /102591/)
    const [, handler, when] = await gateway.program.err.until(FAILED)
    assert.deepEqual([handler, when], ['h', phase])
    assert.deepEqual([await ask(bad), await ask(other)], [200, 200])
    assert.equal(gateway.program.err.text.match(/reactor died/g)!.length, 1)
  })
}
