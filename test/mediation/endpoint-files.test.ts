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
