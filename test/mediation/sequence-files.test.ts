/** Which sequences are used: of the home, of the package, or the active ones. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import {
  changedSequences,
  loadSequences,
  NO_SEQUENCES,
  readParsedSequences,
  type SequenceSet,
} from '../../src/mediation/sequence-files.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { DEFAULT_FAULTS } from '../harness/default-sequences.ts'

const FOLDER = 'synapse-configs/default/sequences'
const REFERENCE_FOLDER = `repository/deployment/server/${FOLDER}`
const DEFAULTS = DEFAULT_FAULTS.sequences.map(({ name }) => name)

function sequence(name: string, content = '<respond/>'): string {
  return `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">\n${content}\n</sequence>`
}

/** Number of steps of a sequence. */
function length({ files }: SequenceSet, name: string): number | undefined {
  return files.get(name)?.plan.steps.length
}

function errorsOf({ errors }: SequenceSet): readonly string[] {
  return errors.map(diagnostic => formatDiagnostic(diagnostic).replace(/^[^:]*\//, ''))
}

test('a home without sequences has the default ones', async t => {
  const set = await loadSequences(temporaryHome(t, {}))
  assert.deepEqual([...set.files.keys()], [...DEFAULTS].sort())
  assert.deepEqual([set.errors, set.warnings, set.fallbacks], [[], [], []])
})

test('a file of the home replaces the default of its name, and can run further files', async t => {
  const home = temporaryHome(t, {
    [`${FOLDER}/fault.xml`]: sequence('fault', '<sequence key="mine"/><respond/>'),
    [`${FOLDER}/mine.xml`]: sequence('mine'),
    [`${FOLDER}/notes.txt`]: 'no sequence',
    [`${FOLDER}/.hidden.xml`]: 'no sequence',
  })
  const set = await loadSequences(home)
  assert.deepEqual(set.errors, [])
  assert.equal(length(set, 'fault'), 2)
  assert.equal(length(set, 'mine'), 1)
  assert.equal(set.files.size, DEFAULTS.length + 1)
})

test('a sequence that runs a faulty one gets an error that names the faulty file', async t => {
  const home = temporaryHome(t, {
    [`${FOLDER}/fault.xml`]: sequence('fault', '<sequence key="mine"/><respond/>'),
    [`${FOLDER}/mine.xml`]: sequence('mine', '<fly/>'),
  })
  const set = await loadSequences(home)
  assert.deepEqual(set.fallbacks, ['mine', 'fault'])
  const [own, caller, ...others] = errorsOf(set)
  assert.match(own!, /^mine\.xml:2: fly: is not a mediator/)
  assert.equal(caller, 'fault.xml:2: sequence key = mine: the file of this sequence is faulty (correct mine.xml)')
  assert.deepEqual(others, [])
})

test('the layout of the reference platform is read, unless the home has its own folder', async t => {
  const far = { [`${REFERENCE_FOLDER}/fault.xml`]: sequence('fault') }
  const home = temporaryHome(t, far)
  assert.equal(length(await loadSequences(home), 'fault'), 1)
  const both = temporaryHome(t, { ...far, [`${FOLDER}/main.xml`]: sequence('main') })
  const set = await loadSequences(both)
  assert.notEqual(length(set, 'fault'), 1)
  assert.equal(length(set, 'main'), 1)
  assert.match(formatDiagnostic(set.warnings[0]!), /is ignored, because .* exists/)
})

const BROKEN: readonly (readonly [name: string, text: string, expected: RegExp])[] = [
  ['malformed XML', '<sequence', /^fault\.xml:\d+: /],
  ['another root element', '<proxy/>', /^fault\.xml:1: expected the element <sequence>/],
  ['an unknown mediator', sequence('fault', '<fly/>'), /^fault\.xml:2: fly: is not a mediator/],
  ['a document type', `<!DOCTYPE x>${sequence('fault')}`, /^fault\.xml:1: a document type is not allowed/],
  ['an invalid expression', sequence('fault', '<property name="a" expression="$ctx:"/>'), /^fault\.xml:2: /],
  ['a missing sequence', sequence('fault', '<sequence key="none"/>'), /^fault\.xml:2: sequence key = none: there/],
  ['another name', sequence('other'), /^fault\.xml:1: /],
  ['bytes that are not UTF-8', '\u00ff', /^fault\.xml: cannot be read: it is not UTF-8/],
]

for (const [name, text, expected] of BROKEN) {
  test(`a file with ${name} is an error with its position, and a start uses the default`, async t => {
    const home = temporaryHome(t, { [`${FOLDER}/fault.xml`]: '' })
    writeFileSync(join(home, FOLDER, 'fault.xml'), text, name === 'bytes that are not UTF-8' ? 'latin1' : 'utf8')
    const set = await loadSequences(home)
    assert.equal(errorsOf(set).length, 1, errorsOf(set).join('\n'))
    assert.match(errorsOf(set)[0]!, expected)
    assert.deepEqual(set.fallbacks, ['fault'])
    assert.ok((length(set, 'fault') ?? 0) > 1)
  })

  test(`a reload of a file with ${name} keeps the active sequence`, async t => {
    const home = temporaryHome(t, {
      [`${FOLDER}/fault.xml`]: sequence('fault'),
      [`${FOLDER}/mine.xml`]: sequence('mine'),
    })
    const before = await loadSequences(home)
    writeFileSync(join(home, FOLDER, 'fault.xml'), text, name === 'bytes that are not UTF-8' ? 'latin1' : 'utf8')
    writeFileSync(join(home, FOLDER, 'mine.xml'), sequence('mine', '<drop/>'))
    const after = await loadSequences(home, before)
    assert.equal(after.files.get('fault'), before.files.get('fault'))
    assert.deepEqual(changedSequences(before, after), ['mine'])
    assert.deepEqual(after.fallbacks, ['fault'])
  })
}

const GLOBAL = 'WSO2AM--Ext--In'

test('D722: the attribute name decides, whatever the file is called', async t => {
  const text = `<!-- <sequence name="none"> -->\n${sequence(GLOBAL)}`
  const home = temporaryHome(t, { [`${FOLDER}/global_ext.xml`]: text })
  const set = await loadSequences(home)
  assert.deepEqual([set.errors, set.warnings, set.fallbacks], [[], [], []])
  assert.equal(length(set, GLOBAL), 1)
  assert.equal(set.files.has('global_ext'), false)
})

/** [what, text of the file at the reload]. */
const SPOILT: readonly (readonly [string, string])[] = [
  ['a mistake', sequence(GLOBAL, '<fly/>')],
  ['no name that can be read', '<sequence'],
]
for (const [what, text] of SPOILT) {
  test(`D722: a file of another name with ${what} keeps the active sequence of its name`, async t => {
    const home = temporaryHome(t, { [`${FOLDER}/global_ext.xml`]: sequence(GLOBAL) })
    const before = await loadSequences(home)
    writeFileSync(join(home, FOLDER, 'global_ext.xml'), text)
    const after = await loadSequences(home, before)
    assert.equal(errorsOf(after).length, 1)
    assert.deepEqual(after.fallbacks, [GLOBAL])
    assert.deepEqual(changedSequences(before, after), [])
  })
}

test('D722: of two files with one name the one that is called so holds, and the other is an error', async t => {
  const two = sequence('mine', '<log/><respond/>')
  const home = temporaryHome(t, { [`${FOLDER}/a.xml`]: two, [`${FOLDER}/mine.xml`]: sequence('mine') })
  const set = await loadSequences(home)
  assert.match(
    errorsOf(set).join(),
    /^a\.xml: sequence\/name = mine: is the name of .*mine\.xml as well \(rename one\)$/,
  )
  assert.equal(length(set, 'mine'), 1)
})

test('sequences of tenants are a warning, because the gateway does not read them', async t => {
  const tenant = (id: string) => `repository/tenants/${id}/${FOLDER}`
  const home = temporaryHome(t, {
    [`${tenant('1')}/a.xml`]: sequence('a'),
    [`${tenant('12')}/b.xml`]: sequence('b'),
    'repository/tenants/3/notes.txt': '',
  })
  const set = await loadSequences(home)
  assert.deepEqual(set.errors, [])
  assert.match(
    set.warnings.map(formatDiagnostic).join(),
    /repository\/tenants: sequences of the tenants 1, 12 are not read \(move them to synapse-configs\/default\/sequences/,
  )
})

test('sequences that run a removed one are replaced too, along the whole chain', async t => {
  const home = temporaryHome(t, {
    [`${FOLDER}/a.xml`]: sequence('a', '<sequence key="b"/>'),
    [`${FOLDER}/b.xml`]: sequence('b', '<sequence key="c"/>'),
    [`${FOLDER}/main.xml`]: sequence('main', '<sequence key="a"/><respond/>'),
  })
  const set = await loadSequences(home)
  assert.deepEqual([set.files.has('a'), set.files.has('b')], [false, false])
  assert.notEqual(length(set, 'main'), 2)
  assert.equal(set.errors.length, 3)
})

test('an unchanged file is not parsed again, and a removed file is dropped', async t => {
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

test('irregular, too long and too many files are errors', async t => {
  const home = temporaryHome(t, { [`${FOLDER}/mine.xml`]: sequence('mine'), 'elsewhere.xml': sequence('main') })
  const folder = join(home, FOLDER)
  mkdirSync(join(folder, 'fault.xml'))
  execFileSync('mkfifo', [join(folder, '_token_fault_.xml')])
  symlinkSync(join(home, 'elsewhere.xml'), join(folder, 'main.xml'))
  symlinkSync(join(home, 'nowhere.xml'), join(folder, '_threat_fault_.xml'))
  writeFileSync(join(folder, 'guardrail_fault.xml'), ' '.repeat(1024 * 1024 + 1))
  const set = await loadSequences(home)
  assert.deepEqual(errorsOf(set).toSorted(), [
    '_token_fault_.xml: cannot be read: it is not a regular file (put a file there)',
    'fault.xml: cannot be read: it is a folder (put a file there)',
    'guardrail_fault.xml: cannot be read: it is longer than 1 MiB (leave out what is not needed)',
  ])
  assert.equal(length(set, 'main'), 1)
  assert.ok(set.files.has('_threat_fault_') && set.files.has('_token_fault_'))
  for (let i = 0; i < 256; i++) writeFileSync(join(folder, `z${i}.xml`), sequence(`z${i}`))
  assert.match(errorsOf(await loadSequences(home)).join('\n'), /holds more than 256 sequences/)
})

test('the request fields that all sequences read are limited', async t => {
  const reading = (from: number) =>
    Array.from({ length: 40 }, (_, i) => `<property name="p" expression="$trp:X-${from + i}"/>`).join('')
  const home = temporaryHome(t, {
    [`${FOLDER}/a.xml`]: sequence('a', reading(0)),
    [`${FOLDER}/b.xml`]: sequence('b', reading(40)),
  })
  const set = await loadSequences(home)
  assert.match(errorsOf(set).join(), /the sequences read more than 64 different request fields/)
  assert.deepEqual([set.files.has('a'), set.files.has('b')], [true, false])
})

test('an unreadable folder keeps the active sequences', {
  skip: process.getuid?.() === 0 ? 'as root' : false,
}, async t => {
  const home = temporaryHome(t, { [`${FOLDER}/main.xml`]: sequence('main') })
  const before = await loadSequences(home)
  chmodSync(join(home, FOLDER), 0)
  t.after(() => chmodSync(join(home, FOLDER), 0o755))
  const after = await loadSequences(home, before)
  assert.equal(after.files.get('main'), before.files.get('main'))
  assert.match(errorsOf(after).join(), /cannot be read: EACCES/)
})

test('NO_SEQUENCES is empty', () => {
  assert.deepEqual([...NO_SEQUENCES.files], [])
})

/** Content of parsed-sequences.json, null for no file, and the error. */
const PARSED: readonly (readonly [text: string | null, expected: RegExp | null])[] = [
  [null, null],
  ['{}', null],
  [
    '{"fault": {"text"',
    /parsed-sequences\.json: cannot be used: it is not a JSON object \(install the package again\)$/,
  ],
  ['', /it is not a JSON object/],
  ['null', /it is not a JSON object/],
  ['[]', /it is not a JSON object/],
]

for (const [text, expected] of PARSED) {
  test(`parsed-sequences.json with ${text ?? 'no file'} ${expected === null ? 'is no error' : 'is an error'}`, t => {
    const home = temporaryHome(t, text === null ? {} : { 'parsed-sequences.json': text })
    const { sequences, error: diagnostic } = readParsedSequences(join(home, 'parsed-sequences.json'))
    assert.deepEqual(sequences, {})
    if (expected === null) assert.equal(diagnostic, undefined)
    else assert.match(formatDiagnostic(diagnostic!), expected)
  })
}

test('a folder parsed-sequences.json is an error', t => {
  const { sequences, error: diagnostic } = readParsedSequences(temporaryHome(t, {}))
  assert.deepEqual(sequences, {})
  assert.match(formatDiagnostic(diagnostic!), /cannot be used: EISDIR/)
})
