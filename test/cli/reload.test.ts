/** `reload`: what an answer of the gateway comes to in words and as an exit code. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { reload } from '../../src/cli/reload.ts'
import type { Fault } from '../../src/config/fault.ts'
import { ControlSocket } from '../../src/primary/control-socket.ts'
import { NO_APIS_CHANGED, NO_SEQUENCES_CHANGED, type ReloadAnswer } from '../../src/primary/reload-report.ts'
import { argumentsFor, Transcript, temporaryHome } from '../config/temporary-home.ts'

const IN_FORCE: ReloadAnswer = {
  outcome: 'in force',
  apis: NO_APIS_CHANGED,
  sequences: NO_SEQUENCES_CHANGED,
  keys: [],
  restart: [],
  faults: [],
  warnings: [],
  failures: [],
}
const FAULT: Fault = { where: 'F:1', key: 'a', given: '', expected: 'is wrong', remedy: '' }

/** What a gateway that answers so is told of. */
async function asked(
  t: TestContext,
  answer: ReloadAnswer,
  json = false,
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const home = temporaryHome(t, {})
  const socket = await ControlSocket.open(home, { reload: () => answer }, assert.fail)
  t.after(() => socket!.close())
  const [out, err] = [new Transcript(), new Transcript()]
  const code = await reload(argumentsFor(home, { dataDir: home, json }), out, err)
  return { code, out: out.text, err: err.text }
}

const CODES: readonly (readonly [what: string, code: number, answer: Partial<ReloadAnswer>])[] = [
  ['all of it is in force', 0, {}],
  ['warnings change nothing', 0, { warnings: [FAULT] }],
  ['a faulty API stays as it was', 1, { faults: [FAULT], apis: { ...NO_APIS_CHANGED, kept: ['a/1.0.0'] } }],
  ['a reactor has not taken it', 1, { failures: ['no room'] }],
  ['both', 1, { faults: [FAULT], failures: ['no room'] }],
  ['refused: nothing has changed', 78, { outcome: 'refused', faults: [FAULT] }],
]

for (const [what, code, answer] of CODES) {
  for (const json of [false, true]) {
    test(`exit code ${code}${json ? ' with --json' : ''}: ${what}`, async t => {
      assert.equal((await asked(t, { ...IN_FORCE, ...answer }, json)).code, code)
    })
  }
}

test('exit code 1: there is no gateway to ask', async t => {
  const home = temporaryHome(t, {})
  const err = new Transcript()
  assert.equal(await reload(argumentsFor(home, { dataDir: home }), new Transcript(), err), 1)
  assert.match(err.text, /^no gateway runs with the data folder /)
})

const CHANGES: ReloadAnswer['keys'] = [
  { key: 'a', running: 'x-corr', wanted: ['p', 'q'], secret: false, where: 'F:2' },
  { key: 'b', running: null, wanted: 5, secret: false, where: 'F:3' },
  { key: 'c', running: '(not set)', wanted: '(set)', secret: true, where: '' },
]

test('values are said as TOML writes them, and plain with --json', async t => {
  const answer = { ...IN_FORCE, keys: CHANGES, restart: CHANGES.slice(0, 1) }
  assert.equal(
    (await asked(t, answer)).out,
    `changed  a: "x-corr" -> ["p","q"] (F:2)
changed  b: not there -> 5 (F:3)
changed  c: (not set) -> (set)
restart  a: "x-corr" -> ["p","q"] (F:2): takes a restart
in force, but for one key that takes a restart
`,
  )
  assert.deepEqual(JSON.parse((await asked(t, answer, true)).out), answer)
})
