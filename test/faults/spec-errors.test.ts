/** The error tables of the specification, extracted from its text, against the table of codes and `sluice why`. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { why } from '../../src/cli/why.ts'
import { FAULT, REPLACED_CODES } from '../../src/faults/error-codes.ts'
import { argumentsFor, Transcript } from '../config/temporary-home.ts'
import spec from './spec-errors.json' with { type: 'json' }

interface Row {
  readonly status: number
  readonly message: string
  readonly description: string
  readonly sequence: string
  readonly raisedIn: string
  readonly pendingFeature: string
}

const ROOT = join(import.meta.dirname, '..', '..')
const SEQUENCES = join(ROOT, 'conf', 'synapse-configs', 'default', 'sequences')
const ROWS: Readonly<Record<string, Row>> = FAULT

/** Statuses and messages that the specification leaves open, and those of this gateway. */
const OPEN: Readonly<Record<number, Partial<Row>>> = {
  900424: { status: 503 },
  900911: { message: 'Internal Server Error' },
}

test('the extracted tables have all codes and sequences of the specification', () => {
  assert.equal(spec.handlerCodes.length, 22)
  assert.equal(spec.transportCodes.length, 12)
  assert.equal(spec.sequenceLevelCodes.length, 3)
  assert.equal(spec.sequences.length, 12)
})

for (const { code, message, status } of spec.handlerCodes) {
  test(`API handler error codes: ${code} ${message}`, () => {
    const row = ROWS[code]
    assert.ok(row !== undefined)
    const open = OPEN[code] ?? {}
    assert.equal(row.message, open.message ?? message)
    assert.equal(
      String(row.status),
      open.status === undefined ? status.replace(/^listed under /, '') : `${open.status}`,
    )
    assert.equal(open.status !== undefined, status === 'not listed')
    assert.equal(open.message !== undefined, message === 'listed under 401')
  })
}

for (const { code, detail } of spec.transportCodes) {
  test(`Transport error codes: ${code} ${detail}`, async () => {
    assert.equal(ROWS[code]?.sequence, 'fault')
    assert.notEqual(await told(code), '')
  })
}

for (const { code, meaning } of spec.sequenceLevelCodes) {
  test(`Sequence-level codes: ${code} (${meaning})`, async () => {
    assert.ok(ROWS[code] !== undefined || REPLACED_CODES[code] !== undefined)
    assert.match(await told(code), / {2}sequence {3}/)
  })
}

test('900904 is deprecated and replaced by 900901', async () => {
  assert.match(await told(900904), /deprecated.*900901/)
})

for (const { file, calledWhen } of spec.sequences) {
  test(`Default fault sequences: ${file}, ${calledWhen}`, () => assert.ok(existsSync(join(SEQUENCES, file))))
}

test('guardrail_fault.xml, which tenants need, ships with the package', () => {
  assert.ok(existsSync(join(SEQUENCES, 'guardrail_fault.xml')))
})

for (const [code, { message, description, sequence, raisedIn, pendingFeature }] of Object.entries(ROWS)) {
  test(`${code}: sluice why shows its sequence, and the file or feature that raises it`, async () => {
    assert.ok(existsSync(join(SEQUENCES, `${sequence}.xml`)))
    assert.equal([raisedIn, pendingFeature].filter(it => it !== '').length, 1)
    const text = await told(Number(code))
    assert.ok(text.includes(`${sequence}.xml`) || /client gets {2}(?:nothing|a reset)/.test(text), text)
    assert.ok(text.includes(raisedIn === '' ? `nothing yet: ${pendingFeature}` : raisedIn), text)
    if (!/^10\d{4}$/.test(code)) assert.ok(text.includes(`${message}: ${description}`), text)
  })
}

test('each code is raised in the file that its row names, and a code without a file nowhere', () => {
  const isElsewhere = (path: string) => !/^src\/(?:faults|config|cli|observe)\//.test(path)
  const paths = globSync('src/**/*.{ts,js}', { cwd: ROOT }).filter(isElsewhere)
  const sources = paths.map(path => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
  const wrong = Object.entries(ROWS).filter(([code, { raisedIn }]) => {
    const alias = code === '404' ? '|NO_SUCH_API\\b' : ''
    const calls = '[rR]efusal\\(|unsubscribed\\(|\\|\\| |refusalOf\\(|denial\\(|return |code: |Unready\\(exchange, |= '
    const named = new RegExp(`(?:${calls})${code}\\b${alias}`)
    // Few files have the number: a search for it is faster than the pattern.
    const isIn = (text: string) => (text.includes(code) || alias !== '') && named.test(text)
    const files = sources.filter(({ text }) => isIn(text)).map(({ path }) => path)
    if (raisedIn === '' || !code.startsWith('10')) return raisedIn === '' ? files.length > 0 : !files.includes(raisedIn)
    return !existsSync(join(ROOT, raisedIn))
  })
  assert.deepEqual(wrong, [])
})

async function told(code: number): Promise<string> {
  const out = new Transcript()
  assert.equal(await why(argumentsFor('/nowhere', { rest: [String(code)] }), out), 0)
  return out.text
}
