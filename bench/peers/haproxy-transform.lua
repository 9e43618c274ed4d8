-- The transformation of `mediation-*` in Lua: JSON becomes tables and tables become JSON, in plain Lua, because
-- HAProxy has no JSON library for it. An action makes the body and its length, a filter puts it in place.

local NULL = {}
local ESCAPES = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
local LITERALS = { { "true", true }, { "false", false }, { "null", NULL } }
local decode

local function decoded_string(text, at)
  local close = text:find('["\\]', at + 1)
  if text:byte(close) == 34 then return text:sub(at + 1, close - 1), close + 1 end
  local parts, from = {}, at + 1
  while true do
    local stop = text:find('["\\]', from)
    parts[#parts + 1] = text:sub(from, stop - 1)
    if text:byte(stop) == 34 then return table.concat(parts), stop + 1 end
    local escape = text:sub(stop + 1, stop + 1)
    if escape == "u" then
      parts[#parts + 1] = utf8.char(tonumber(text:sub(stop + 2, stop + 5), 16))
      from = stop + 6
    else
      parts[#parts + 1] = ESCAPES[escape] or escape
      from = stop + 2
    end
  end
end

local function skipped(text, at) return text:find("[^ \t\r\n]", at) end

local function decoded_array(text, at)
  local list = { is_array = true }
  at = skipped(text, at + 1)
  if text:byte(at) == 93 then return list, at + 1 end
  while true do
    list[#list + 1], at = decode(text, at)
    at = skipped(text, at)
    if text:byte(at) == 93 then return list, at + 1 end
    if text:byte(at) ~= 44 then error("not JSON") end
    at = at + 1
  end
end

local function decoded_object(text, at)
  local members, key = {}, nil
  at = skipped(text, at + 1)
  if text:byte(at) == 125 then return members, at + 1 end
  while true do
    key, at = decoded_string(text, skipped(text, at))
    at = skipped(text, at)
    if text:byte(at) ~= 58 then error("not JSON") end
    members[key], at = decode(text, at + 1)
    at = skipped(text, at)
    if text:byte(at) == 125 then return members, at + 1 end
    if text:byte(at) ~= 44 then error("not JSON") end
    at = at + 1
  end
end

function decode(text, at)
  at = skipped(text, at)
  local byte = text:byte(at)
  if byte == 34 then return decoded_string(text, at) end
  if byte == 123 then return decoded_object(text, at) end
  if byte == 91 then return decoded_array(text, at) end
  for _, literal in ipairs(LITERALS) do
    if text:sub(at, at + #literal[1] - 1) == literal[1] then return literal[2], at + #literal[1] end
  end
  local number, stop = text:match("^(-?%d+%.?%d*[eE]?[+-]?%d*)()", at)
  return tonumber(number), stop
end

local function escaped(char)
  if char == '"' or char == "\\" then return "\\" .. char end
  return string.format("\\u%04x", char:byte())
end

local function encode(value, parts)
  local kind = type(value)
  if kind == "string" then
    parts[#parts + 1] = '"' .. value:gsub('[%c"\\]', escaped) .. '"'
  elseif value == NULL then
    parts[#parts + 1] = "null"
  elseif kind ~= "table" then
    parts[#parts + 1] = tostring(value)
  elseif value.is_array then
    for index = 1, #value do
      parts[#parts + 1] = index == 1 and "[" or ","
      encode(value[index], parts)
    end
    parts[#parts + 1] = #value == 0 and "[]" or "]"
  else
    local before = "{"
    for name, member in pairs(value) do
      parts[#parts + 1] = before
      encode(name, parts)
      parts[#parts + 1] = ":"
      encode(member, parts)
      before = ","
    end
    parts[#parts + 1] = before == "{" and "{}" or "}"
  end
end

core.register_action("transform", { "http-req" }, function(txn)
  local order = decode(txn.sf:req_body(), 1)
  local parts = {}
  encode({ id = order.orderId, buyer = order.customer, lines = order.items, source = "gateway" }, parts)
  local body = table.concat(parts)
  txn:set_var("txn.transformed", body)
  txn.http:req_set_header("content-length", tostring(#body))
end)

local Transform = { id = "transform", flags = filter.FLT_CFG_FL_HTX }
Transform.__index = Transform

function Transform:new() return setmetatable({}, Transform) end

function Transform:start_analyze(txn, channel)
  if not channel:is_resp() then filter.register_data_filter(self, channel) end
end

function Transform:http_payload(txn, message)
  local body = txn:get_var("txn.transformed")
  if body == nil or message.channel:is_resp() then return end
  message:set(body)
  txn:unset_var("txn.transformed")
end

core.register_filter("transform", Transform, function(instance) return instance end)
