/** Sequences of tests: written as the elements within them, read as files are, run as reactors do. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe as told } from '../../src/config/fault.ts'
import { Findings } from '../../src/config/findings.ts'
import { formatAnswer } from '../../src/mediation/formatter.ts'
import { Message } from '../../src/mediation/message.ts'
import type { SequenceProgram } from '../../src/mediation/program.ts'
import { readSequence } from '../../src/mediation/read-sequence.ts'
import { Sequences } from '../../src/mediation/sequences.ts'
import type { Value } from '../../src/mediation/value.ts'

const DECLARATIONS = [
  'xmlns="http://ws.apache.org/ns/synapse"',
  'xmlns:fn="http://www.w3.org/2005/xpath-functions"',
  'xmlns:syn="http://ws.apache.org/ns/synapse"',
  'xmlns:s11="http://schemas.xmlsoap.org/soap/envelope/"',
  'xmlns:s12="http://www.w3.org/2003/05/soap-envelope"',
  'xmlns:am="http://example.org/am"',
].join(' ')

/** The file of a sequence; its steps begin in line 1. */
export function file(steps: string, name = 'one'): string {
  return `<sequence ${DECLARATIONS} name="${name}">${steps}</sequence>`
}

interface ReadFile {
  readonly program: SequenceProgram | undefined
  readonly faults: readonly string[]
  readonly warnings: readonly string[]
}

export async function readFile(text: string, name = 'one'): Promise<ReadFile> {
  const findings = new Findings()
  const program = await readSequence(name, `${name}.xml`, text, findings)
  return { program, faults: findings.faults.map(told), warnings: findings.warnings.map(told) }
}

/** What is wrong with these steps. */
export async function faultsOf(steps: string): Promise<readonly string[]> {
  return (await readFile(file(steps))).faults
}

/** Tests, one per row: steps, and how one of the faults that are noted of them begins. */
export function testRefusals(rows: readonly (readonly [steps: string, said: string])[]): void {
  for (const [steps, said] of rows) {
    test(`${steps} is refused`, async () => {
      const faults = await faultsOf(steps)
      assert.ok(
        faults.some(fault => fault.startsWith(`one.xml:1: ${said}`)),
        faults.join('\n'),
      )
    })
  }
}

/** A program that has no faults, as a reactor gets it. */
export async function program(steps: string, name = 'one'): Promise<SequenceProgram> {
  const read = await readFile(file(steps, name), name)
  assert.deepEqual(read.faults, [])
  return structuredClone(read.program!)
}

interface Given {
  readonly properties?: Readonly<Record<string, Value>>
  /** By names in lower case. */
  readonly fields?: Readonly<Record<string, string>>
  readonly json?: unknown
  /** Further sequences by name. */
  readonly others?: Readonly<Record<string, string>>
}

interface Ran {
  readonly outcome: string
  readonly message: Message
  /** Level, event and fields. */
  readonly reports: readonly (readonly [string, string, Readonly<Record<string, string | number>>])[]
  readonly answer: ReturnType<typeof formatAnswer>
}

export async function run(
  steps: string,
  { properties = {}, fields = {}, json, others = {} }: Given = {},
): Promise<Ran> {
  const programs = [await program(steps)]
  for (const [name, text] of Object.entries(others)) programs.push(await program(text, name))
  const reports: [string, string, Record<string, string | number>][] = []
  const report = (...said: [string, string, Record<string, string | number>]) => void reports.push(said)
  const message = new Message(name => fields[name])
  for (const [name, value] of Object.entries(properties)) message.set('default', name, value)
  if (json !== undefined) message.payload = { kind: 'json', text: JSON.stringify(json) }
  const outcome = new Sequences(programs, report).run('one', message)
  return { outcome, message, reports, answer: formatAnswer(message, report) }
}

/** Causes that were reported. */
export function causes({ reports }: Ran): readonly (string | number | undefined)[] {
  return reports.map(([, , fields]) => fields.CAUSE_OF_ERROR)
}

/** Value of an expression, as `<property type="STRING">` has it. */
export async function textFrom(expression: string, given?: Given): Promise<string> {
  const escaped = expression.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
  const ran = await run(`<property name="it" expression="${escaped}"/>`, given)
  assert.deepEqual(ran.reports, [])
  return String(ran.message.get('default', 'it'))
}
