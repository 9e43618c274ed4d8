/** Which sequence files count: of the home, of the package, of before. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { describe } from '../../src/config/fault.ts'
import {
  changedSequences,
  loadSequences,
  NO_SEQUENCES,
  readCompiled,
  type SequenceSet,
} from '../../src/primary/sequence-files.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { DEFAULT_FAULTS } from '../harness/default-sequences.ts'

const FOLDER = 'synapse-configs/default/sequences'
const REFERENCE_FOLDER = `repository/deployment/server/${FOLDER}`
const DEFAULTS = DEFAULT_FAULTS.programs.map(({ name }) => name)

function sequence(name: string, content = '<respond/>'): string {
  return `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">\n${content}\n</sequence>`
}

/** How many steps it has. */
function length({ files }: SequenceSet, name: string): number | undefined {
  return files.get(name)?.program.steps.length
}

function told({ faults }: SequenceSet): readonly string[] {
  return faults.map(fault => describe(fault).replace(/^[^:]*\//, ''))
}

test('a home without sequences has the default ones', async t => {
  const set = await loadSequences(temporaryHome(t, {}))
  assert.deepEqual([...set.files.keys()], [...DEFAULTS].sort())
  assert.deepEqual([set.faults, set.warnings, set.kept], [[], [], []])
})

test('a file of the home takes the place of the default of its name, and others can be called', async t => {
  const home = temporaryHome(t, {
    [`${FOLDER}/fault.xml`]: sequence('fault', '<sequence key="mine"/><respond/>'),
    [`${FOLDER}/mine.xml`]: sequence('mine'),
    [`${FOLDER}/notes.txt`]: 'no sequence',
    [`${FOLDER}/.hidden.xml`]: 'no sequence',
  })
  const set = await loadSequences(home)
  assert.deepEqual(set.faults, [])
  assert.equal(length(set, 'fault'), 2)
  assert.equal(length(set, 'mine'), 1)
  assert.equal(set.files.size, DEFAULTS.length + 1)
})

test('what calls a sequence that is faulty is told so, and not to add it', async t => {
  const home = temporaryHome(t, {
    [`${FOLDER}/fault.xml`]: sequence('fault', '<sequence key="mine"/><respond/>'),
    [`${FOLDER}/mine.xml`]: sequence('mine', '<fly/>'),
  })
  const set = await loadSequences(home)
  assert.deepEqual(set.kept, ['mine', 'fault'])
  const [own, caller, ...others] = told(set)
  assert.match(own!, /^mine\.xml:2: fly: is no mediator/)
  assert.equal(caller, 'fault.xml:2: sequence key = mine: the file of this sequence is faulty (correct mine.xml)')
  assert.deepEqual(others, [])
})

test('the layout of the reference platform is read as it is; with both the nearer one counts', async t => {
  const far = { [`${REFERENCE_FOLDER}/fault.xml`]: sequence('fault') }
  const home = temporaryHome(t, far)
  assert.equal(length(await loadSequences(home), 'fault'), 1)
  const both = temporaryHome(t, { ...far, [`${FOLDER}/main.xml`]: sequence('main') })
  const set = await loadSequences(both)
  assert.notEqual(length(set, 'fault'), 1)
  assert.equal(length(set, 'main'), 1)
  assert.match(describe(set.warnings[0]!), /is not read, because there is/)
})

const BROKEN: readonly (readonly [name: string, text: string, expected: RegExp])[] = [
  ['not well-formed', '<sequence', /^fault\.xml:\d+: /],
  ['another element', '<proxy/>', /^fault\.xml:1: expected the element <sequence>/],
  ['an unknown mediator', sequence('fault', '<fly/>'), /^fault\.xml:2: fly: is no mediator/],
  ['a document type', `<!DOCTYPE x>${sequence('fault')}`, /^fault\.xml:1: a document type is not allowed/],
  [
    'an expression that cannot be read',
    sequence('fault', '<property name="a" expression="$ctx:"/>'),
    /^fault\.xml:2: /,
  ],
  [
    'a sequence that is not there',
    sequence('fault', '<sequence key="none"/>'),
    /^fault\.xml:2: sequence key = none: there/,
  ],
  ['another name', sequence('other'), /^fault\.xml:1: /],
  ['no UTF-8', '\u00ff', /^fault\.xml: cannot be read: it is not UTF-8/],
]

for (const [name, text, expected] of BROKEN) {
  test(`${name}: a fault with its place, and the default stands in at a start`, async t => {
    const home = temporaryHome(t, { [`${FOLDER}/fault.xml`]: '' })
    writeFileSync(join(home, FOLDER, 'fault.xml'), text, name === 'no UTF-8' ? 'latin1' : 'utf8')
    const set = await loadSequences(home)
    assert.equal(told(set).length, 1, told(set).join('\n'))
    assert.match(told(set)[0]!, expected)
    assert.deepEqual(set.kept, ['fault'])
    assert.ok((length(set, 'fault') ?? 0) > 1)
  })

  test(`${name}: at a reload what was in force stays`, async t => {
    const home = temporaryHome(t, {
      [`${FOLDER}/fault.xml`]: sequence('fault'),
      [`${FOLDER}/mine.xml`]: sequence('mine'),
    })
    const before = await loadSequences(home)
    writeFileSync(join(home, FOLDER, 'fault.xml'), text, name === 'no UTF-8' ? 'latin1' : 'utf8')
    writeFileSync(join(home, FOLDER, 'mine.xml'), sequence('mine', '<drop/>'))
    const after = await loadSequences(home, before)
    assert.equal(after.files.get('fault'), before.files.get('fault'))
    assert.deepEqual(changedSequences(before, after), ['mine'])
    assert.deepEqual(after.kept, ['fault'])
  })
}

test('who calls what went stands back with it, up to the last that calls', async t => {
  const home = temporaryHome(t, {
    [`${FOLDER}/a.xml`]: sequence('a', '<sequence key="b"/>'),
    [`${FOLDER}/b.xml`]: sequence('b', '<sequence key="c"/>'),
    [`${FOLDER}/main.xml`]: sequence('main', '<sequence key="a"/><respond/>'),
  })
  const set = await loadSequences(home)
  assert.deepEqual([set.files.has('a'), set.files.has('b')], [false, false])
  assert.notEqual(length(set, 'main'), 2)
  assert.equal(set.faults.length, 3)
})

test('what has not changed is not read to a program again; what is gone is gone', async t => {
  const home = temporaryHome(t, { [`${FOLDER}/main.xml`]: sequence('main'), [`${FOLDER}/mine.xml`]: sequence('mine') })
  const before = await loadSequences(home)
  rmSync(join(home, FOLDER, 'mine.xml'))
  const after = await loadSequences(home, before)
  assert.equal(after.files.get('main'), before.files.get('main'))
  assert.deepEqual(changedSequences(before, after), ['mine'])
  rmSync(join(home, FOLDER), { recursive: true })
  const defaults = await loadSequences(home, after)
  assert.deepEqual(changedSequences(after, defaults), ['main'])
  assert.deepEqual([...defaults.files.keys()].sort(), [...DEFAULTS].sort())
})

test('what is no regular file, too long, or too many', async t => {
  const home = temporaryHome(t, { [`${FOLDER}/mine.xml`]: sequence('mine'), 'elsewhere.xml': sequence('main') })
  const folder = join(home, FOLDER)
  mkdirSync(join(folder, 'fault.xml'))
  execFileSync('mkfifo', [join(folder, '_token_fault_.xml')])
  symlinkSync(join(home, 'elsewhere.xml'), join(folder, 'main.xml'))
  symlinkSync(join(home, 'nowhere.xml'), join(folder, '_threat_fault_.xml'))
  writeFileSync(join(folder, 'guardrail_fault.xml'), ' '.repeat(1024 * 1024 + 1))
  const set = await loadSequences(home)
  assert.deepEqual(told(set).toSorted(), [
    '_token_fault_.xml: cannot be read: it is not a regular file (put a file there)',
    'fault.xml: cannot be read: it is a folder (put a file there)',
    'guardrail_fault.xml: cannot be read: it is longer than 1 MiB (leave out what is not needed)',
  ])
  assert.equal(length(set, 'main'), 1)
  assert.ok(set.files.has('_threat_fault_') && set.files.has('_token_fault_'))
  for (let i = 0; i < 256; i++) writeFileSync(join(folder, `z${i}.xml`), sequence(`z${i}`))
  assert.match(told(await loadSequences(home)).join('\n'), /holds more than 256 sequences/)
})

test('the fields of requests that all of them read have a limit', async t => {
  const reading = (from: number) =>
    Array.from({ length: 40 }, (_, i) => `<property name="p" expression="$trp:X-${from + i}"/>`).join('')
  const home = temporaryHome(t, {
    [`${FOLDER}/a.xml`]: sequence('a', reading(0)),
    [`${FOLDER}/b.xml`]: sequence('b', reading(40)),
  })
  const set = await loadSequences(home)
  assert.match(told(set).join(), /sequences read more than 64 different fields/)
  assert.deepEqual([set.files.has('a'), set.files.has('b')], [true, false])
})

test('a folder that cannot be read keeps what is in force', {
  skip: process.getuid?.() === 0 ? 'as root' : false,
}, async t => {
  const home = temporaryHome(t, { [`${FOLDER}/main.xml`]: sequence('main') })
  const before = await loadSequences(home)
  chmodSync(join(home, FOLDER), 0)
  t.after(() => chmodSync(join(home, FOLDER), 0o755))
  const after = await loadSequences(home, before)
  assert.equal(after.files.get('main'), before.files.get('main'))
  assert.match(told(after).join(), /cannot be read: EACCES/)
})

test('nothing is there before the first load', () => {
  assert.deepEqual([...NO_SEQUENCES.files], [])
})

/** What there is in the place of programs.json; null: nothing. */
const COMPILED: readonly (readonly [text: string | null, said: RegExp | null])[] = [
  [null, null],
  ['{}', null],
  ['{"fault": {"text"', /programs\.json: cannot be used: it is no JSON object \(install the package again\)$/],
  ['', /it is no JSON object/],
  ['null', /it is no JSON object/],
  ['[]', /it is no JSON object/],
]

for (const [text, said] of COMPILED) {
  test(`programs.json with ${text ?? 'no file'}: ${said === null ? 'nothing is wrong' : 'a fault'}`, t => {
    const home = temporaryHome(t, text === null ? {} : { 'programs.json': text })
    const { sequences, fault } = readCompiled(join(home, 'programs.json'))
    assert.deepEqual(sequences, {})
    if (said === null) assert.equal(fault, undefined)
    else assert.match(describe(fault!), said)
  })
}

test('programs.json that is a folder is a fault', t => {
  const { sequences, fault } = readCompiled(temporaryHome(t, {}))
  assert.deepEqual(sequences, {})
  assert.match(describe(fault!), /cannot be used: EISDIR/)
})
