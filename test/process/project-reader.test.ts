/** Projects that are read in a thread of their own: large documents, threads that end early, several threads. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { readJob, type ReadingJob } from '../../src/apis/project-reading.ts'
import { AT_RELOAD, AT_START, readInThread } from '../../src/primary/project-reader.ts'
import { API_OF_BOTH_KINDS } from '../apis/api-text.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { largeDocument } from '../harness/large-document.ts'

const MB = 1024 * 1024
const LIMITS = { projectMs: 60_000, heapMb: 2048 }

function documentJob(path: string): ReadingJob {
  return { path, files: null, isThorough: false }
}

test('a document of 1,200 operations and more than 13 MB is deployed at a reload and at a start', async t => {
  const text = largeDocument(1200)
  assert.ok(text.length > 13 * MB && text.length <= 16 * MB, String(text.length))
  const home = temporaryHome(t, { 'apis/large.json': text, 'apis/A/api.yaml': API_OF_BOTH_KINDS })
  for (const thread of [AT_RELOAD, AT_START]) {
    const projects = new ApiProjects(home)
    const { apis, errors, warnings } = projects.load(undefined, undefined, undefined, await projects.read(thread))
    assert.deepEqual([errors, warnings], [[], []])
    assert.deepEqual(
      apis.map(({ name, resources }) => [name, resources.length]),
      [
        ['A', 0],
        ['Large', 1200],
      ],
    )
  }
})

test('a document of more than 16 MiB is one error, wherever it is read', async t => {
  const home = temporaryHome(t, { 'apis/a.json': `{${' '.repeat(16 * MB)}}` })
  const projects = new ApiProjects(home)
  const { errors } = projects.load(undefined, undefined, undefined, await projects.read(AT_RELOAD))
  assert.deepEqual(
    errors.map(it => formatDiagnostic(it).replace(home, '')),
    ['/apis/a.json: cannot be read: it is longer than 16 MiB (leave out what is not needed)'],
  )
})

test('a thread gives the same results as reading here, in the order of the jobs', async t => {
  const names = ['b', 'broken', 'a', 'none']
  const home = temporaryHome(t, {
    'apis/a.json': largeDocument(4, 'A'),
    'apis/b.json': largeDocument(8, 'B'),
    'apis/broken.json': '{"openapi": ',
  })
  const jobs = names.map(name => documentJob(`${home}/apis/${name}.json`))
  assert.deepEqual(await readInThread(jobs), JSON.parse(JSON.stringify(jobs.map(readJob))))
})

test('a project whose reading takes too much memory has an error, and the others are read', async t => {
  const home = temporaryHome(t, {
    'apis/a.json': largeDocument(4, 'A'),
    'apis/b.json': largeDocument(1200, 'B'),
    'apis/c.json': largeDocument(4, 'C'),
  })
  const jobs = ['a', 'b', 'c'].map(name => documentJob(`${home}/apis/${name}.json`))
  const results = await readInThread(jobs, { ...LIMITS, heapMb: 60 })
  assert.deepEqual(
    results.map(({ declared }) => declared?.api.name),
    ['A', undefined, 'C'],
  )
  const [error] = results[1]!.errors.map(it => formatDiagnostic(it).replace(home, ''))
  assert.match(error!, /^\/apis\/b\.json: cannot be read: reading takes too much memory/)
})

test('a thread that takes too long is ended, and what it has not read is an error', async t => {
  const home = temporaryHome(t, { 'apis/a.json': largeDocument(4, 'A'), 'apis/b.json': largeDocument(4, 'B') })
  const jobs = ['a', 'b'].map(name => documentJob(`${home}/apis/${name}.json`))
  const results = await readInThread(jobs, { ...LIMITS, projectMs: 1 })
  assert.deepEqual(
    results.map(({ declared, errors }) => [declared, errors.length]),
    [
      [undefined, 1],
      [undefined, 1],
    ],
  )
  assert.match(formatDiagnostic(results[1]!.errors[0]!), /reading takes longer than 1 ms/)
})

test('a reload with a project that ends the thread keeps its deployed API', async t => {
  const home = temporaryHome(t, { 'apis/a.json': largeDocument(4, 'A') })
  const projects = new ApiProjects(home)
  const before = projects.load()
  const thread = {
    ...AT_RELOAD,
    read: (jobs: readonly ReadingJob[]) => readInThread(jobs, { ...LIMITS, projectMs: 1 }),
  }
  const again = new ApiProjects(home)
  const { apis, kept, errors } = again.load(undefined, before.projects, undefined, await again.read(thread))
  assert.deepEqual([apis, kept.length, errors.length], [before.apis, 1, 1])
})
