/** Directives of templates and their white space, by the chapters of FreeMarker's manual (2.3.30). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { templateProblem } from '../../../src/mediation/freemarker/template-parser.ts'
import { rendered } from './rendered.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: templates

const DATA = JSON.stringify({
  n: 5,
  xs: ['a', 'b', 'c'],
  none: [],
  hash: { k1: 'v1', k2: 'v2' },
  rows: [
    ['a', 'b'],
    ['c', 'd'],
  ],
  s: '<&>',
})

/** Chapter of the manual, template, output. */
const ROWS: readonly (readonly [chapter: string, template: string, output: string])[] = [
  ['if', '<#if n == 1>one<#elseif n == 5>five<#else>other</#if>', 'five'],
  ['if', '<#if n == 1>one<#elseIf n == 2>two<#else>other</#if>', 'other'],
  ['if', '<#if n == 1>one</#if>.', '.'],
  ['list', '<#list xs as x>${x} </#list>', 'a b c '],
  ['list', '<#list none as x>${x}<#else>none</#list>', 'none'],
  ['list', '<#list xs>[<#items as x>${x}<#sep>,</#sep></#items>]<#else>none</#list>', '[a,b,c]'],
  ['list', '<#list none>[<#items as x>${x}</#items>]<#else>none</#list>', 'none'],
  ['list', '<#list hash as k, v>${k}=${v}<#sep>;</#list>', 'k1=v1;k2=v2'],
  ['list', '<#list hash>{<#items as k, v>${k}=${v}<#sep>;</#items>}</#list>', '{k1=v1;k2=v2}'],
  ['list', '<#list hash?keys as k>${k}${hash[k]}<#sep>,</#list>', 'k1v1,k2v2'],
  ['list', '<#list 1..3 as i>${i}<#if i?has_next>,</#if></#list>', '1,2,3'],
  [
    'list',
    '<#list xs as x>${x?index}${x?counter}${x?is_first?c}${x?is_last?c}${x?item_parity} </#list>',
    '01truefalseodd 12falsefalseeven 23falsetrueodd ',
  ],
  ['list', '<#list xs as x>${x_index}${x}<#if x_has_next>,</#if></#list>', '0a,1b,2c'],
  [
    'list',
    '<#list xs><#items as x>${x_index}<#list 1..2 as y>${x_index}${y_index}</#list></#items></#list>',
    '000011101122021',
  ],
  ['list', '<#list hash as k, v>${k_index}${v}<#if k_has_next>,</#if></#list>', '0v1,1v2'],
  ['macro', '<#macro m a rest...>${a}<#list rest as k, v>${k}${v}</#list></#macro><@m a=1 b=2 c=3/>', '1b2c3'],
  ['macro', '<#macro m a><#local l = 1>${.vars["a"]}${.vars["l"]}${.locals.l}</#macro><@m 5/>', '511'],
  ['list', '<#list xs as x>${x?item_cycle("r", "g")}</#list>', 'rgr'],
  ['list', '<#list rows as row><#list row as x>${row?index}${x}<#sep>,</#list><#sep>;</#list>', '0a,0b;1c,1d'],
  ['list', '<#list xs as x><#if x == "b"><#continue></#if>${x}</#list>', 'ac'],
  ['list', '<#list xs as x><#if x == "b"><#break></#if>${x}</#list>!', 'a!'],
  ['list', '<#list 1.. as i><#if (i > 3)><#break></#if>${i}</#list>', '123'],
  ['list', '<#assign x = "outer"><#list xs as x>${x}</#list>${x}', 'abcouter'],
  ['switch', '<#switch n><#case 1>one<#break><#case 5>five<#break><#default>other</#switch>', 'five'],
  ['switch', '<#switch n><#case 5>five <#case 1>one <#break><#default>other</#switch>', 'five one '],
  ['switch', '<#switch "z"><#case "a">a<#break><#default>other</#switch>', 'other'],
  ['assign', '<#assign a = 1 b = a + 1, c="x">${a}${b}${c}', '12x'],
  ['assign', '<#assign a = 1><#assign a += 2><#assign a++><#assign a *= 5><#assign a--><#assign a /= 2>${a}', '9.5'],
  ['assign', '<#assign t = "a"><#assign t += "b">${t}', 'ab'],
  ['assign', '<#assign "a-b" = 1>${.vars["a-b"]}', '1'],
  ['assign', '<#assign x><#list xs as y>${y}</#list></#assign>[${x}]', '[abc]'],
  ['assign', '<#global g = 1>${g}', '1'],
  ['macro', '<#macro m a b=2>${a}-${b}</#macro><@m a=1/> <@m 3 4/> <@m b=5 a=6></@m>', '1-2 3-4 6-5'],
  ['macro', '<#macro m a b=a c=b + 1>${a}${b}${c}</#macro><@m a=1/> <@m 1 5/>', '112 156'],
  ['macro', '<#macro m a=b + c b=c c=1>${a}${b}${c}</#macro><@m/> <@m c=4/> <@m b=7/>', '211 844 871'],
  ['macro', '<#assign b = 9><#macro m a=b b=1>${a}${b}</#macro><@m/>', '91'],
  ['function', '<#function f a=b b=2><#return a + b></#function>${f()} ${f(1)}', '4 3'],
  ['macro', '<@later/><#macro later>defined below</#macro>', 'defined below'],
  ['macro', '<#macro m rest...>${rest?join("+")}</#macro><@m 1 2 3/>', '1+2+3'],
  ['macro', '<#macro m><#local x = 1><#assign y = 2>${x}${y}</#macro><#assign x = "o"><@m/>${x}${y}', '12o2'],
  ['macro', '<#macro m>a<#return>b</#macro><@m/>c', 'ac'],
  ['nested', '<#macro m>[<#nested><#nested>]</#macro><@m>x</@m>', '[xx]'],
  ['nested', '<#macro m><#list 1..2 as i><#nested i, i * 2></#list></#macro><@m ; a, b>${a}:${b} </@m>', '1:2 2:4 '],
  ['nested', '<#macro o>(<#nested>)</#macro><#macro i><@o><#nested></@o></#macro><#assign z = 1><@i>${z}</@i>', '(1)'],
  ['function', '<#function avg a b><#return (a + b) / 2></#function>${avg(10, 20)}', '15'],
  [
    'function',
    '<#function fact i><#if (i <= 1)><#return 1></#if><#return i * fact(i - 1)></#function>${fact(5)}',
    '120',
  ],
  ['function', '<#function f>text<#return "r"></#function>${f()}', 'r'],
  ['compress', '<#compress>  a\n\n  b   c \n</#compress>', 'a\nb c'],
  ['noparse', '<#noparse>${x}<#if></#noparse>', '${x}<#if>'],
  ['comments', 'a<#-- ${x} <#if> -->b<#comment>c</#comment>', 'ab'],
  ['escape', '<#escape x as x?xml>${s} <#noescape>${s}</#noescape></#escape> ${s}', '&lt;&amp;&gt; <&> <&>'],
  ['escape', '<#escape x as (x!"none")?upper_case>${missing} ${xs[0]}</#escape>', 'NONE A'],
  ['attempt', '<#attempt>a${missing}<#recover>failed</#attempt>', 'failed'],
  ['attempt', '<#attempt>a<#recover>failed</#attempt>', 'a'],
  ['setting', '<#setting number_format="0.00">${n}<#setting number_format="computer"> ${1000}', '5.00 1000'],
  ['setting', '<#setting boolean_format="yes,no">${true}${(n == 1)}<#setting locale="en_US">', 'yesno'],
  ['ftl', '<#ftl encoding="UTF-8">\na', 'a'],
  ['ftl', ' <#ftl strip_whitespace=false>\n<#if true>\n a\n</#if>\n', '\n\n a\n\n'],
  ['flush', 'a<#flush>b', 'ab'],
  // White-space stripping.
  ['white space', '{\n  <#if n == 5>\n  "a"\n  </#if>\n}\n', '{\n  "a"\n}\n'],
  ['white space', '<#list xs as x>\n  ${x}\n</#list>\n', '  a\n  b\n  c\n'],
  ['white space', 'a\n  <#-- comment -->  \nb', 'a\nb'],
  ['white space', 'a\n  <#if true>  ${n}\n</#if>b', 'a\n    5\nb'],
  ['white space', 'x <#if true> y </#if> z', 'x  y  z'],
  ['white space', '<#macro m>\n  m\n</#macro>\n  <@m/>\nb', '  m\nb'],
  ['white space', '<#assign a = 1>\n\n\n<#assign b = 2>\n${a}', '1'],
  ['white space', 'a\r\n<#if true>\r\nb\r\n</#if>\r\nc', 'a\r\nb\r\nc'],
  ['t, rt, lt, nt', 'a\n   b<#t>\nc', 'a\nbc'],
  ['t, rt, lt, nt', 'a\n   b  <#rt>\nc', 'a\n   b  c'],
  ['t, rt, lt, nt', '--\n  1 <#t>\n  2<#t>\n  3<#lt>\n  4\n  5<#rt>\n  6\n--\n', '--\n1 23\n  4\n  5  6\n--\n'],
  ['t, rt, lt, nt', 'a\n   b  <#lt>\nc', 'a\nb  \nc'],
  ['t, rt, lt, nt', '<#list xs as x>\n  ${x}<#sep>,</#sep><#t>\n</#list>\n', 'a,b,c'],
  ['t, rt, lt, nt', 'a\n  <#if true><#nt>\nb</#if>', 'a\n  \nb'],
  // What is no tag.
  ['text', '<a href="#">$ {x} $x # <!-- <x> --></a>', '<a href="#">$ {x} $x # <!-- <x> --></a>'],
]

for (const [chapter, template, output] of ROWS) {
  test(`${chapter}: ${JSON.stringify(template)} is ${JSON.stringify(output)}`, () => {
    assert.equal(rendered(template, DATA), output)
  })
}

/** Template, and the beginning of its error with the line. */
const REFUSED: readonly (readonly [template: string, error: string])[] = [
  ['\n${payload["//item"]}', '2 has XPath in brackets'],
  ["${payload.a['.//@id']}", '1 has XPath in brackets'],
  ['a\n<#include "x.ftl">', '2 has <#include>, which is not supported'],
  ['<#import "x.ftl" as x>', '1 has <#import>, which is not supported'],
  ['\n\n${x?new()}', '3 has ?new, which is not supported'],
  ['${x?api.y()}', '1 has ?api, which is not supported'],
  ['${x?eval}', '1 has ?eval, which is not supported'],
  ['${x?interpret}', '1 has ?interpret, which is not supported'],
  ['${x?uper_case}', '1 has ?uper_case, which is not supported'],
  ['${x?replace("a")}', '1 has ?replace, which takes 2 to 3 arguments and not 1'],
  ['${x?replace("(", "", "r")}', '1 has ?replace, which has a pattern that is not a valid regular expression'],
  ['${x?replace("a", "", "c")}', '1 has ?replace, which has the unknown flag c'],
  ['${x?matches("(?=a)")}', '1 has ?matches, which has a pattern that is not a valid regular expression'],
  ['#{x}', '1 has #{…}, which is not supported'],
  ['<#visit x>', '1 has <#visit>, which is not supported'],
  ['<#lisst xs as x>', '1 has <#lisst>, which is not supported'],
  ['<#if x>', '1 has <#if> without its end'],
  ['<#if x></#list>', '1 has </#list> where it ends nothing'],
  ['</#if>', '1 has </#if> where it ends nothing'],
  ['<#else>', '1 has <#else> outside of <#if>'],
  ['<#items as x></#items>', '1 has <#items> outside of <#list>'],
  ['<#sep>,</#sep>', '1 has <#sep> outside of <#list>'],
  ['<#break>', '1 has <#break> outside of <#list>'],
  ['<#return>', '1 has <#return> outside of a macro or function'],
  ['<#local x = 1>', '1 has <#local> outside of a macro or function'],
  ['<#nested>', '1 has <#nested> outside of a macro'],
  ['<#noescape></#noescape>', '1 has <#noescape> outside of <#escape>'],
  ['a<#ftl>', '1 has <#ftl> behind its beginning'],
  ['<#ftl output_format="XML">', '1 has <#ftl output_format>, which is not supported in this form'],
  ['<#setting locale="de">', '1 has the setting locale, which is not supported in this form'],
  ['<#setting time_zone="GMT">', '1 has the setting time_zone, which is not supported in this form'],
  ['<#setting number_format="0.0E0">', '1 has the number_format 0.0E0, which is not a number format'],
  ['<#setting date_format="qq">', '1 has the date_format qq, which has the unknown letter q'],
  ['${', '1 has no } that ends it'],
  ['${x', '1 has no } that ends it'],
  ['${}', '1 ends where an expression is expected'],
  ['${x y}', '1 has more than one expression'],
  ['${x.}', '1 expected a name behind the dot'],
  ['${(x}', '1 has a } that nothing opens'],
  ['${"x}', '1 has an unknown sign or a text without its end'],
  ['${"a ${x y}"}', '1 has more than one expression'],
  ['${"\\q"}', '1 has an unknown escape in a text'],
  ['${.error_handler}', '1 has .error_handler, which is not supported'],
  ['${x.@@next_sibling_element}', '1 has @@next_sibling_element, which is not supported'],
  ['<#assign x>', '1 has <#assign> without its end'],
  ['<#assign x = 1 in ns>', '1 expected ='],
  ['<#-- x', '1 has a comment without its end'],
  ['<#noparse>x', '1 has no </#noparse>'],
  ['<#if x[0 > 1]>', '1 has a > within brackets'],
  [`${'${'}${'('.repeat(200)}1${')'.repeat(200)}}`, '1 is nested more than 100 levels deep'],
  [`${'${'}${'!'.repeat(200)}x}`, '1 is nested more than 100 levels deep'],
  [`${'${'}x${'.y'.repeat(200)}}`, '1 has more than 100 steps'],
  [`${'<#if x>'.repeat(200)}${'</#if>'.repeat(200)}`, '1 is nested more than 100 levels deep'],
]
test('nested escapes that double an expression are refused, not run for ever', () => {
  const nested = (depth: number) => `${'<#escape x as x + x>'.repeat(depth)}${'${s}'}${'</#escape>'.repeat(depth)}`
  assert.equal(rendered(nested(3), '{"s":"a"}'), 'aaaaaaaa')
  const expected =
    /^makes, with its <#escape>s, expressions of more than 100000 parts, in its line 1: nest fewer of them/
  assert.match(templateProblem(nested(60)), expected)
  // Many expressions of an escape that uses its value once stay what they are.
  assert.equal(templateProblem(`<#escape x as x?xml>${'${s}'.repeat(10_000)}</#escape>`), '')
})

// biome-ignore-end lint/suspicious/noTemplateCurlyInString: templates

for (const [template, error] of REFUSED) {
  test(`${JSON.stringify(template.slice(0, 60))} is refused: ${error}`, () => {
    const [, why, line] = /^([\s\S]*), in its line (\d+): [\s\S]+$/.exec(templateProblem(template)) ?? []
    assert.ok(`${line} ${why}`.startsWith(error), `${line} ${why}`)
  })
}
