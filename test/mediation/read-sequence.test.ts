/** Sequence files: what is refused of them, with file, line, field and remedy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultsOf, file, readFile } from './sequence.ts'

const NS = 'http://ws.apache.org/ns/synapse'

/** What, the whole file, and its first fault. */
const FILES: readonly (readonly [string, string, string])[] = [
  ['is empty', '', 'one.xml:1: not well-formed'],
  ['is not well-formed', `<sequence xmlns="${NS}" name="one">\n<send>\n</sequence>`, 'one.xml:2: not well-formed'],
  ['has another root', `<proxy xmlns="${NS}"/>`, 'one.xml:1: expected the element <sequence> (let it hold all others)'],
  [
    'has no namespace',
    '<sequence name="one"/>',
    `one.xml:1: xmlns: is not of the sequence language (add xmlns="${NS}")`,
  ],
  ['has no name', `<sequence xmlns="${NS}"/>`, 'one.xml:1: sequence/name: is missing (add it)'],
  [
    'has the name of another file',
    `<sequence xmlns="${NS}" name="two"/>`,
    'one.xml:1: sequence/name = two: is not the name of its file, one (call it like the file)',
  ],
  [
    'has unknown attributes',
    file('').replace('name=', 'onErr="x" name='),
    'one.xml:1: sequence/onErr: is no attribute of it (known are name, onError, trace, statistics)',
  ],
  ['holds text', file('text'), 'one.xml:1: sequence: holds text, which is not acted on (remove the text)'],
  [
    'has a document type',
    `<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "c">]>\n${file('')}`,
    'one.xml:2: a document type is not allowed (remove <!DOCTYPE)',
  ],
  ['has an unknown entity', file('<log separator="&b;"/>'), 'one.xml:1: not well-formed'],
]

for (const [what, text, said] of FILES) {
  test(`a file that ${what} is refused`, async () => {
    const { program, faults } = await readFile(text)
    assert.equal(program, undefined)
    assert.equal(faults[0]?.slice(0, said.length), said)
  })
}

/** Steps in line 2, and their faults. */
const STEPS: readonly (readonly [string, ...string[]])[] = [
  ['<propertyy name="a" value="1"/>', 'propertyy: is no mediator (<property>?)'],
  ['<payloadfactory/>', 'payloadfactory: is no mediator (<payloadFactory>?)'],
  [
    '<foo/>',
    'foo: is no mediator (known are property, payloadFactory, header, log, makefault, filter, switch, sequence, in, out, send, respond, drop)',
  ],
  ['<am:log/>', `am:log: is no mediator (mediators are of the namespace ${NS})`],
  ['<log xmlns=""/>', `log: is no mediator (mediators are of the namespace ${NS})`],
  ...['aggregate', 'call', 'class', 'clone', 'enrich', 'foreach', 'iterate', 'script', 'throwError', 'variable'].map(
    name => [`<${name}/>`, `${name}: comes with mediation (remove it)`] as const,
  ),
  ['<log leve="full"/>', 'log/leve: is no attribute of it (level?)'],
  ['<drop a="1"/>', 'drop/a: is no attribute of it (it has none)'],
  ['<drop>text</drop>', 'drop: holds text, which is not acted on (remove the text)'],
  ['<drop><log/></drop>', 'log: is no element of <drop> (it holds none)'],
  ['<log am:level="full"/>', 'log/am:level: is no attribute of it (known are level, category, separator)'],
  ['<send><endpoint/></send>', 'endpoint: comes with mediation (remove it: without one the client is answered)'],
  ['<send><log/></send>', 'log: is no element of <send> (remove it)'],
  ['<sequence/>', 'sequence/key: is missing (add it)'],
  ['<sequence key="{$ctx:x}"/>', 'sequence/key = {$ctx:x}: comes with mediation (write the name)'],
  ['<in><foo/></in>', 'foo: is no mediator'],
  ['<out><foo/></out>', 'foo: is no mediator'],
]

for (const [step, ...said] of STEPS) {
  test(`${step} is refused`, async () => {
    const faults = await faultsOf(`\n${step}`)
    assert.equal(faults.length, said.length)
    for (const [at, expected] of said.entries()) {
      assert.equal(faults[at]!.slice(0, 11 + expected.length), `one.xml:2: ${expected}`)
    }
  })
}

test('every fault of a file is told, with its line', async () => {
  const faults = await faultsOf('\n<foo/>\n<log level="x"/>\n<filter xpath="true()"><then>\n<call/></then></filter>')
  assert.deepEqual(
    faults.map(fault => fault.split(' ')[0]),
    ['one.xml:2:', 'one.xml:3:', 'one.xml:5:'],
  )
})

test('comments, space and descriptions change nothing', async () => {
  const { program, faults } = await readFile(file('\n <!-- a < b & c -->\n <log description="says hello"/>\n'))
  assert.deepEqual(faults, [])
  assert.deepEqual(
    program!.steps.map(({ mediator, line }) => [mediator, line]),
    [['log', 3]],
  )
})

test('what is not reached is warned of', async () => {
  const { warnings } = await readFile(file('<respond/>\n<drop/>'))
  assert.deepEqual(warnings, ['one.xml:2: drop: is not reached after <respond> (remove it)'])
})

test('files are bounded: bytes, elements, depth', async () => {
  const nested = (depth: number) => '<in>'.repeat(depth) + '</in>'.repeat(depth)
  assert.deepEqual(await faultsOf(nested(99)), [])
  assert.deepEqual(await faultsOf(nested(100)), ['one.xml:1: in: is more than 100 elements deep (nest less)'])
  assert.deepEqual(await faultsOf(nested(9000)), ['one.xml:1: in: is more than 100 elements deep (nest less)'])
  assert.deepEqual(await faultsOf('<drop/>'.repeat(10_000)), ['one.xml: has more than 10000 elements (divide it)'])
  assert.deepEqual(await faultsOf(' '.repeat(1024 * 1024)), ['one.xml: has more than 1048576 bytes (divide it)'])
})

test('sequences that are called are known by name', async () => {
  const steps = '<sequence key="a"/><filter xpath="1"><then sequence="b"/><else><sequence key="a"/></else></filter>'
  assert.deepEqual((await readFile(file(steps))).program!.calls, ['a', 'b'])
})

test('what exported sequences say of themselves is told of where it would be acted on elsewhere', async () => {
  const exported = file('').replace('name=', 'trace="disable" statistics="enable" onError="fault" name=')
  const { program, warnings } = await readFile(exported)
  assert.ok(program)
  assert.deepEqual(warnings, [
    'one.xml:1: sequence/onError: is not acted on (leave it out)',
    'one.xml:1: sequence/statistics: is not acted on (leave it out)',
  ])
})
