/** Files that sequences name are looked at before the first message needs them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { usedFileProblems } from '../../src/mediation/home-texts.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { planOf } from './test-sequences.ts'

const FAIL = '<on-fail><drop/></on-fail>'

/** [steps, problem; '' for none] */
const ROWS: readonly (readonly [string, string])[] = [
  ['<class name="a.mjs"/>', ''],
  ['<class name="b.mjs"/>', 'one.xml:1: key = b.mjs: b.mjs is not there (ENOENT)'],
  ['<script language="js" key="../b.mjs"/>', 'one.xml:1: key = ../b.mjs: ../b.mjs is'],
  ['<script language="js" key="a.js"/>', 'one.xml:1: key = a.js: is neither a local entry nor a file of the home'],
  [`<validate><schema key="a.json"/>${FAIL}</validate>`, ''],
  [`<validate><schema key="a.mjs"/>${FAIL}</validate>`, 'one.xml:1: key = a.mjs: is no JSON Schema'],
  [
    '<enrich><source type="inline" key="none"/><target type="body"/></enrich>',
    'one.xml:1: key = none: is neither a local entry nor a file of the home',
  ],
  ['<script language="js" key="entry"><include key="entry"/></script>', ''],
  [
    '<script language="js" key="entry"><include key="none"/></script>',
    'one.xml:1: key = none: is neither a local entry nor a file of the home',
  ],
  [
    '<script language="js" key="java.js"/>',
    'one.xml:1: key = java.js: uses Packages in its line 2: Java does not run here; write it in JavaScript',
  ],
  ['<payloadFactory media-type="text"><format key="entry"/></payloadFactory>', ''],
  ['<payloadFactory template-type="freemarker"><format key="entry"/></payloadFactory>', ''],
  [
    '<payloadFactory template-type="freemarker"><format key="wrong.ftl"/></payloadFactory>',
    'one.xml:1: key = wrong.ftl: has <#include>, which is not supported, in its line 2: write its text here',
  ],
  ['<payloadFactory media-type="text"><format key="bad"/></payloadFactory>', 'one.xml:1: key = bad: has src'],
]

for (const [steps, problem] of ROWS) {
  test(`files of ${steps}: ${problem || 'are there'}`, async t => {
    const home = temporaryHome(t, {
      'a.mjs': 'export const mediate = 1',
      'wrong.ftl': 'a\n<#include "b">',
      'java.js': '// Packages\nfunction mediate(mc) { return Packages.java }',
      'a.json': '{"type":"object"}',
      'synapse-configs/default/local-entries/entry.xml': '<localEntry key="entry">text</localEntry>',
      'synapse-configs/default/local-entries/bad.xml': '<localEntry key="bad" src="file:x"/>',
    })
    const [found, ...more] = (await usedFileProblems(home, [await planOf(steps)])).map(each => formatDiagnostic(each))
    assert.deepEqual(more, [])
    if (problem === '') assert.equal(found, undefined)
    else assert.ok(String(found).startsWith(problem), String(found))
  })
}
