/** Files of named endpoints: where they are, what replaces a faulty one, and sequences that name a missing one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { changedSequences, loadSequences } from '../../src/mediation/sequence-files.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const FOLDER = 'synapse-configs/default'
const NAMESPACE = 'xmlns="http://ws.apache.org/ns/synapse"'
const endpoint = (name: string, url: string) =>
  `<endpoint ${NAMESPACE} name="${name}"><address uri="${url}"/></endpoint>`
const caller = (key: string) => `<sequence ${NAMESPACE} name="caller"><call><endpoint key="${key}"/></call></sequence>`

for (const root of ['', 'repository/deployment/server/']) {
  test(`endpoints are read from ${root}${FOLDER}/endpoints`, async t => {
    const home = temporaryHome(t, { [`${root}${FOLDER}/endpoints/stock.xml`]: endpoint('stock', 'http://h/stock') })
    const { endpoints, errors } = await loadSequences(home)
    assert.deepEqual(errors, [])
    assert.deepEqual([...endpoints.keys()], ['stock'])
    assert.equal(endpoints.get('stock')!.form.address.kind, 'urls')
  })
}

test('a faulty endpoint is an error, and the active one stays', async t => {
  const path = `${FOLDER}/endpoints/stock.xml`
  const active = await loadSequences(temporaryHome(t, { [path]: endpoint('stock', 'http://h/stock') }))
  const next = await loadSequences(temporaryHome(t, { [path]: endpoint('stock', 'jms:/queue') }), active)
  assert.match(next.errors.map(formatDiagnostic).join('\n'), /stock\.xml:1: address\/uri = jms:\/queue/)
  assert.equal(next.endpoints.get('stock'), active.endpoints.get('stock'))
})

test('a sequence that names an endpoint without a file is an error, and is left out', async t => {
  const { files, errors } = await loadSequences(
    temporaryHome(t, { [`${FOLDER}/sequences/caller.xml`]: caller('stock') }),
  )
  assert.equal(files.has('caller'), false)
  assert.match(errors.map(formatDiagnostic).join('\n'), /caller\.xml:1: endpoint key = stock: there is no endpoint/)
})

test('a changed endpoint is reported like a changed sequence', async t => {
  const home = (url: string) =>
    temporaryHome(t, {
      [`${FOLDER}/endpoints/stock.xml`]: endpoint('stock', url),
      [`${FOLDER}/sequences/caller.xml`]: caller('stock'),
    })
  const active = await loadSequences(home('http://h/1'))
  assert.equal(active.files.has('caller'), true)
  assert.deepEqual(changedSequences(active, await loadSequences(home('http://h/2'))), ['endpoint stock'])
})

const group = (name: string, ...keys: readonly string[]) => {
  const members = keys.map(key => `<endpoint key="${key}"/>`).join('\n')
  return `<endpoint ${NAMESPACE} name="${name}"><failover>\n${members}</failover></endpoint>`
}
const inFolder = (files: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${FOLDER}/endpoints/${name}.xml`, text]))

test('a group takes the endpoints of the files that it names, also after a change of one of them', async t => {
  const home = (url: string) =>
    temporaryHome(t, inFolder({ all: group('all', 'a', 'b'), a: endpoint('a', url), b: endpoint('b', 'http://b') }))
  const urlsOf = ({ endpoints }: Awaited<ReturnType<typeof loadSequences>>) => {
    const { address } = endpoints.get('all')!.form
    return address.kind === 'urls' ? address.endpoints.endpoints.map(({ url }) => url) : []
  }
  const active = await loadSequences(home('http://a/1'))
  assert.deepEqual(urlsOf(active), ['http://a/1', 'http://b'])
  assert.deepEqual(urlsOf(await loadSequences(home('http://a/2'), active)), ['http://a/2', 'http://b'])
})

test('a member of a group has the settings of a group, whatever its file is alone', async t => {
  const { endpoints } = await loadSequences(
    temporaryHome(t, inFolder({ all: group('all', 'a'), a: endpoint('a', 'http://a') })),
  )
  const suspensions = ['a', 'all'].map(name => {
    const { address } = endpoints.get(name)!.form
    return address.kind === 'urls' ? address.endpoints.endpoints[0]!.settings.suspensionMs : 0
  })
  assert.deepEqual(suspensions, [1000, 30_000])
})

/** Files, and the error for the file `all`. */
const WRONG_GROUPS: readonly (readonly [files: Readonly<Record<string, string>>, said: RegExp])[] = [
  [{ all: group('all', 'none') }, /all\.xml:2: endpoint key = none: there is no endpoint of this name/],
  [{ all: group('all', 'all') }, /all\.xml:2: endpoint key = all: there is no endpoint of this name/],
  [
    { all: group('all', 'a'), a: `<endpoint ${NAMESPACE} name="a"><default/></endpoint>` },
    /all\.xml:2: endpoint key = a: has an endpoint whose address only messages tell/,
  ],
]

for (const [files, said] of WRONG_GROUPS) {
  test(`${files.all} is refused: ${said.source}`, async t => {
    const { endpoints, errors } = await loadSequences(temporaryHome(t, inFolder(files)))
    assert.match(errors.map(formatDiagnostic).join('\n'), said)
    assert.equal(endpoints.has('all'), false)
  })
}

test('a sequence with a group that names an endpoint without a file is an error', async t => {
  const steps = '<call><endpoint><failover><endpoint key="none"/></failover></endpoint></call>'
  const text = `<sequence ${NAMESPACE} name="caller">${steps}</sequence>`
  const { errors } = await loadSequences(temporaryHome(t, { [`${FOLDER}/sequences/caller.xml`]: text }))
  assert.match(errors.map(formatDiagnostic).join('\n'), /caller\.xml:1: endpoint key = none: there is no endpoint/)
})

/** A list of a file, a sequence that uses it, and what is said. */
const WRONG_LISTS: readonly (readonly [member: string, steps: string, said: RegExp])[] = [
  [
    '<endpoint key="none"/>',
    '<call><endpoint key="all"/></call>',
    /all\.xml:2: endpoint key = none: there is no endpoint of this name/,
  ],
  [
    '<endpoint key="all"/>',
    '<call><endpoint key="all"/></call>',
    /all\.xml:2: endpoint key = all: there is no endpoint of this name/,
  ],
  [
    '<endpoint key="a"/>',
    '<clone><target endpoint="all"/></clone>',
    /caller\.xml:1: endpoint key = all: is a list of recipients, to which only <send> and <call> send/,
  ],
  [
    '<endpoint key="a"/>',
    '<call><endpoint><failover><endpoint key="all"/></failover></endpoint></call>',
    /caller\.xml:1: endpoint key = all: is a list of recipients/,
  ],
  [
    '<endpoint key="a"/>',
    '<call><endpoint><recipientlist><endpoint key="all"/></recipientlist></endpoint></call>',
    /caller\.xml:1: endpoint key = all: is a list of recipients/,
  ],
]
for (const [member, steps, said] of WRONG_LISTS) {
  test(`a list with ${member}, and ${steps}, is refused`, async t => {
    const files = {
      all: `<endpoint ${NAMESPACE} name="all">\n<recipientlist>${member}</recipientlist></endpoint>`,
      a: `<endpoint ${NAMESPACE} name="a"><address uri="http://h"/></endpoint>`,
    }
    const caller = `<sequence ${NAMESPACE} name="caller">${steps}</sequence>`
    const home = temporaryHome(t, { ...inFolder(files), [`${FOLDER}/sequences/caller.xml`]: caller })
    const { errors } = await loadSequences(home)
    assert.match(errors.map(formatDiagnostic).join('\n'), said)
  })
}
