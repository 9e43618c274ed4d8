/** `reload`: output and exit code for the reports of a gateway. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { reload } from '../../src/cli/reload.ts'
import type { Diagnostic } from '../../src/config/diagnostics.ts'
import { ControlSocket } from '../../src/primary/control-socket.ts'
import { NO_APIS_CHANGED, NO_SEQUENCES_CHANGED, type ReloadReport } from '../../src/primary/reload-report.ts'
import { argumentsFor, Transcript, temporaryHome } from '../config/temporary-home.ts'

const APPLIED: ReloadReport = {
  outcome: 'applied',
  apis: NO_APIS_CHANGED,
  sequences: NO_SEQUENCES_CHANGED,
  keys: [],
  restart: [],
  errors: [],
  warnings: [],
  failures: [],
}
const ERROR: Diagnostic = { where: 'F:1', key: 'a', given: '', expected: 'is wrong', hint: '' }

/** Runs the command against a control socket with the report. */
async function run(
  t: TestContext,
  report: ReloadReport,
  json = false,
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const home = temporaryHome(t, {})
  const socket = await ControlSocket.open(home, { reload: () => report }, assert.fail)
  t.after(() => socket!.close())
  const [out, err] = [new Transcript(), new Transcript()]
  const code = await reload(argumentsFor(home, { dataDir: home, json }), out, err)
  return { code, out: out.text, err: err.text }
}

const CODES: readonly (readonly [what: string, code: number, report: Partial<ReloadReport>])[] = [
  ['everything is applied', 0, {}],
  ['warnings do not matter', 0, { warnings: [ERROR] }],
  [
    'an API with errors keeps its deployed version',
    1,
    { errors: [ERROR], apis: { ...NO_APIS_CHANGED, kept: ['a/1.0.0'] } },
  ],
  ['a reactor has not applied it', 1, { failures: ['no room'] }],
  ['both', 1, { errors: [ERROR], failures: ['no room'] }],
  ['refused: nothing has changed', 78, { outcome: 'refused', errors: [ERROR] }],
]

for (const [what, code, report] of CODES) {
  for (const json of [false, true]) {
    test(`exit code ${code}${json ? ' with --json' : ''}: ${what}`, async t => {
      assert.equal((await run(t, { ...APPLIED, ...report }, json)).code, code)
    })
  }
}

test('exit code 1: there is no gateway to call', async t => {
  const home = temporaryHome(t, {})
  const err = new Transcript()
  assert.equal(await reload(argumentsFor(home, { dataDir: home }), new Transcript(), err), 1)
  assert.match(err.text, /^no gateway runs with the data folder /)
})

const CHANGES: ReloadReport['keys'] = [
  { key: 'a', running: 'x-corr', wanted: ['p', 'q'], secret: false, where: 'F:2' },
  { key: 'b', running: null, wanted: 5, secret: false, where: 'F:3' },
  { key: 'c', running: '(not set)', wanted: '(set)', secret: true, where: '' },
]

test('values are printed as in TOML, and as they are with --json', async t => {
  const report = { ...APPLIED, keys: CHANGES, restart: CHANGES.slice(0, 1) }
  assert.equal(
    (await run(t, report)).out,
    `changed  a: "x-corr" -> ["p","q"] (F:2)
changed  b: not there -> 5 (F:3)
changed  c: (not set) -> (set)
restart  a: "x-corr" -> ["p","q"] (F:2): needs a restart
applied, except for one key that needs a restart
`,
  )
  assert.deepEqual(JSON.parse((await run(t, report, true)).out), report)
})
