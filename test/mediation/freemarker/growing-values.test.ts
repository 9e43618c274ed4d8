/** Sequences and hashes that templates make of others: values of their own, in linear time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, SEED } from '../../harness/random.ts'
import { rendered } from './rendered.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: templates
const NAMES = ['s', 't', 'u', 'v']

test('sequences that grow out of each other, in any order, are what copies would be', () => {
  const random = new Random(SEED)
  for (let round = 0; round < 200; round++) {
    const sequences = new Map<string, readonly number[]>([
      ...NAMES.map(name => [name, []] as const),
      ['list', [7, 8, 9]],
    ])
    let template = NAMES.map(name => `<#assign ${name} = []>`).join('')
    let expected = ''
    for (let step = 0; step < 25; step++) {
      const [to, from, other] = [random.pick(NAMES), random.pick([...NAMES, 'list']), random.pick([...NAMES, 'list'])]
      const [one, two, number] = [sequences.get(from)!, sequences.get(other)!, random.below(5)]
      if (one.length + two.length > 100) continue
      const at = random.below(one.length + 1)
      const [term, value] = random.pick([
        [`${from} + [${number}]`, [...one, number]],
        [`[${number}] + ${from}`, [number, ...one]],
        [`${from} + ${other}`, [...one, ...two]],
        [`${from}[${at}..]`, one.slice(at)],
        [`${from}[0..<${at}]`, one.slice(0, at)],
      ] as const)
      sequences.set(to, value)
      template += `<#assign ${to} = ${term}>\${${to}?seq_index_of(${number})}/\${${from}?seq_contains(${number})?c} `
      expected += `${value.indexOf(number)}/${sequences.get(from)!.includes(number)} `
    }
    template += NAMES.map(name => `\${${name}?join(",")};\${${name}?size} `).join('')
    expected += NAMES.map(name => `${sequences.get(name)!.join(',')};${sequences.get(name)!.length} `).join('')
    assert.equal(rendered(template, '{"list":[7,8,9]}'), expected, `seed ${SEED}: ${template}`)
  }
})

test('hashes that grow out of each other, in any order, are what copies would be', () => {
  const random = new Random(SEED)
  for (let round = 0; round < 200; round++) {
    const hashes = new Map<string, Readonly<Record<string, number>>>(NAMES.map(name => [name, {}]))
    hashes.set('hash', { z: 1, b: 2 })
    let template = NAMES.map(name => `<#assign ${name} = {}>`).join('')
    for (let step = 0; step < 25; step++) {
      const [to, from, other] = [random.pick(NAMES), random.pick([...NAMES, 'hash']), random.pick([...NAMES, 'hash'])]
      const [key, number] = [random.pick(['a', 'b', 'c', 'd', 'e']), random.below(10)]
      const [term, value] = random.pick([
        [`${from} + {"${key}": ${number}}`, { ...hashes.get(from), [key]: number }],
        [`${from} + ${other}`, { ...hashes.get(from), ...hashes.get(other) }],
      ] as const)
      hashes.set(to, value)
      template += `<#assign ${to} = ${term}>`
    }
    template += NAMES.map(name => `\${${name}?size}:<#list ${name} as k, v>\${k}=\${v},</#list> `).join('')
    const shown = (hash: Readonly<Record<string, number>>): string => {
      const members = Object.entries(hash)
      return `${members.length}:${members.map(([name, value]) => `${name}=${value},`).join('')} `
    }
    const expected = NAMES.map(name => shown(hashes.get(name)!)).join('')
    assert.equal(rendered(template, '{"hash":{"z":1,"b":2}}'), expected, `seed ${SEED}: ${template}`)
  }
})

test('an item is found in a sequence by its value and kind, however often it is asked for', () => {
  const json = '{"l":["1",1,null,true,"a",1.0,{"k":1},12345678901234567890,"true","a"],"m":[["a"],"a"]}'
  const asked = ['"1"', '1', 'true', '"a"', '"true"', '1.0', '"z"', '12345678901234567890', 'false', '2']
  const expected = '0 1 3 4 8 1 -1 7 -1 -1 '
  const once = asked.map(item => `\${l?seq_index_of(${item})} `).join('')
  assert.equal(rendered(once.repeat(3), json), expected.repeat(3))
  assert.equal(rendered('${m?seq_index_of("a")}${m?seq_index_of("a")}${m?seq_index_of("a", 1)}', json), '111')
})

const ITEMS = 60_000
const LIST = JSON.stringify({
  l: Array.from({ length: ITEMS }, (_, at) => `t${at}`),
  h: Object.fromEntries(Array.from({ length: ITEMS }, (_, at) => [`k${at}`, at])),
})

/** [template, text]. Each would reach the limit of time where a turn of its loop took as long as the list. */
const LOOPS = [
  ['<#assign s = []><#list l as x><#assign s = s + [x]></#list>${s?size}', '60,000'],
  ['<#assign s = []><#list l as x><#assign s += [x, x]></#list>${s?size}', '120,000'],
  ['<#assign s = []><#list l as x><#if !s?seq_contains(x)><#assign s = s + [x]></#if></#list>${s?size}', '60,000'],
  ['<#assign n = 0><#list l as x><#if l?seq_index_of(x) == x?index><#assign n++></#if></#list>${n}', '60,000'],
  ['<#assign n = 0><#list l as x><#if !l?seq_contains("q")><#assign n++></#if></#list>${n}', '60,000'],
  ['<#assign h = {}><#list l as x><#assign h = h + {x: (h[x]!0) + 1, "n": 1}></#list>${h?size}', '60,001'],
  ['<#assign t = l><#list l as x><#if t?size gt 1><#assign t = t[1..]></#if></#list>${t[0]}', 't59999'],
  ['<#assign n = 0><#list l as x><#if h?keys?size == h?size><#assign n++></#if></#list>${n}', '60,000'],
] as const

for (const [template, text] of LOOPS) {
  test(`${template} takes linear time`, () => {
    assert.equal(rendered(template, LIST, { items: 200_000 }), text)
  })
}
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: templates
