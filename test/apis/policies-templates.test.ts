/** Templates of policies: what they write, and what they refuse. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderTemplate } from '../../src/apis/policy-template.ts'

const VALUES = new Map([
  ['a', 'one'],
  ['b', '<&"\'>'],
  ['empty', ''],
  ['no', 'false'],
  ['n', '3'],
])

/** [template, text]. */
const RENDERED: readonly (readonly [string, string])[] = [
  ['plain', 'plain'],
  ['{{a}} {{ a }}', 'one one'],
  ['<x y="{{ b }}"/>', '<x y="&lt;&amp;&quot;&apos;&gt;"/>'],
  ['<![CDATA[{{ b }}]]>{{ b }}', '<![CDATA[<&"\'>]]>&lt;&amp;&quot;&apos;&gt;'],
  ['{{ unknown }}', ''],
  ["{{ unknown | default('x') }}{{ empty|default(\"y\") }}{{ a | default('z') }}", 'xyone'],
  ['{% if a %}A{% endif %}', 'A'],
  ['{% if unknown %}A{% else %}B{% endif %}', 'B'],
  ['{% if no %}A{% elif a %}B{% elif b %}C{% else %}D{% endif %}', 'B'],
  ['{% if not no and a %}A{% endif %}', 'A'],
  ['{% if empty or n == 3 %}A{% endif %}', 'A'],
  ["{% if a == 'one' %}A{% endif %}{% if a != 'one' %}B{% endif %}", 'A'],
  ['{% if a is defined %}A{% endif %}{% if q is not defined %}B{% endif %}', 'AB'],
  ['{% if a %}{% if no %}A{% else %}B{% endif %}C{% endif %}', 'BC'],
  ['{% if no %}{% if a %}A{% endif %}{% endif %}', ''],
  ['{%- if a -%}A{%- endif -%}', 'A'],
  ['a{# a\ncomment #}b', 'a\nb'],
  ['{% if no %}\na\n{% endif %}b', '\n\nb'],
]
for (const [template, text] of RENDERED) {
  test(`${JSON.stringify(template)} becomes ${JSON.stringify(text)}`, () => {
    assert.equal(renderTemplate(template, VALUES), text)
  })
}

/** [template, line, reason]. */
const REFUSED: readonly (readonly [string, number, string])[] = [
  ['\n{% for x in y %}', 2, '{% for %} is not supported'],
  ['{{ a | upper }}', 1, '{{ a | upper }} is not supported'],
  ['{{ a.b }}', 1, '{{ a.b }} is not supported'],
  ['\n\n{% if a %}', 3, '{% if %} is not closed'],
  ['{% endif %}', 1, '{% endif %} is outside of {% if %}'],
  ['{% if a > 3 %}x{% endif %}', 1, 'the condition a > 3 is not supported'],
]
for (const [template, line, reason] of REFUSED) {
  test(`${JSON.stringify(template)} is refused: ${reason}`, () => {
    const found = renderTemplate(template, VALUES)
    assert.ok(typeof found === 'object')
    assert.deepEqual([found.line, found.expected], [line, reason])
  })
}
