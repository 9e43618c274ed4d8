/** The scenario of the healthcare API: targets follow the speed of the machine, and bodies are sent in turn. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HEALTHCARE_ROWS, targetNotes } from '../../bench/healthcare.ts'
import { requestLines } from '../../bench/load/wrk.ts'
import { readOptions } from '../../bench/options.ts'
import { summarize } from '../../bench/results.ts'
import { readSearch, searchPairs } from '../../src/mounted/healthcare/search-query.ts'
import { sampleServices } from '../../src/mounted/healthcare/storage-sample.ts'

const rate = (perCore: number, perSecond = perCore) =>
  summarize([{ requestsPerCoreSecond: perCore, requestsPerSecond: perSecond }])

test('targets are scaled by what bare nginx passes, and reads and searches count by core, creates by machine', () => {
  const half = rate(20_000)
  const met = { nginx: half, read: rate(1000), create: rate(1, 325), 'search: _id': rate(215) }
  const unknown = Object.values(HEALTHCARE_ROWS).filter(({ target }) => target !== undefined).length - 3
  const without = `Targets without a measurement: ${unknown}.`
  assert.deepEqual(targetNotes(met).slice(1), ['No target of a measured row is missed.', without])
  assert.match(targetNotes(met)[0]!, /^Bare nginx passes 20000 requests\/s per core, 0\.50 of 40000;/)
  const missed = { nginx: half, read: rate(999), create: rate(5000, 324), 'search: _id': rate(214) }
  assert.deepEqual(targetNotes(missed).slice(1), [
    'Missed: read (999 of 1000), create (324 of 325), search: _id (214 of 215).',
    without,
  ])
  assert.match(targetNotes({ read: rate(1) })[0]!, /^Without nginx/)
})

test('every row that a search names is one that the API takes', async () => {
  const services = [...sampleServices(8)]
  const page = { link: [{ relation: 'next', url: 'http://gw/healthcare/HealthcareService?name=a' }] }
  const ask = async (): Promise<Response> => Response.json(page)
  for (const [row, { requests }] of Object.entries(HEALTHCARE_ROWS)) {
    const { paths, bodies = paths } = await requests(services, ask)
    assert.equal(bodies.length, paths.length, row)
    if (!row.startsWith('search')) continue
    const { query } = readSearch(searchPairs(paths[0]!.split('?')[1]!), { isStrict: true })
    assert.notEqual(query, null, row)
  }
})

test('a line for wrk has a path and its body', () => {
  const request = { method: 'POST', fields: {}, uploadBytes: 0, expectedStatuses: [201], downloadBytes: null }
  const lines = requestLines({ path: '/a', request: { ...request, paths: ['/a', '/b'], bodies: ['{"a": 1}', '{}'] } })
  assert.deepEqual(lines, ['/a  {"a": 1}', '/b  {}'])
})

test('healthcare runs where it is named', () => {
  assert.equal(readOptions([])!.scenarios.includes('healthcare'), false)
  assert.deepEqual(readOptions(['--scenario', 'healthcare'])!.scenarios, ['healthcare'])
})
